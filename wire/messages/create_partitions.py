"""CreatePartitions (api key 37), versions 0-3, flexible from 2.

v1 response before throttling | v2 flexible | v3 THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from ..schema import array, boolean, entity, int16, int32, message, string


@entity
class CreatePartitionsAssignment:
    """The brokers of a new partition; the first is the leader."""

    broker_ids: tuple[int, ...] = array(int32)


@entity
class CreatePartitionsTopic:
    """A topic and its new number of partitions; with null assignments the broker assigns the replicas."""

    name: str = string()
    count: int = int32()
    assignments: tuple[CreatePartitionsAssignment, ...] | None = array(CreatePartitionsAssignment, nullable="0+")


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Topics to extend; `validate_only` checks without a change."""

    topics: tuple[CreatePartitionsTopic, ...] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@entity
class CreatePartitionsTopicResult:
    """The result of one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """A row for each topic of the request."""

    throttle_time_ms: int = int32()
    results: tuple[CreatePartitionsTopicResult, ...] = array(CreatePartitionsTopicResult)
