"""CreatePartitions (api key 37), versions 0-3, flexible from 2.

v1 answered before throttling | v2 flexible | v3 THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from ..schema import array, boolean, entity, int16, int32, message, string


@entity
class CreatePartitionsAssignment:
    """The brokers that shall hold one new partition, the first of them leading."""

    broker_ids: tuple[int, ...] = array(int32)


@entity
class CreatePartitionsTopic:
    """A topic and its new total of partitions; null assignments let the broker choose."""

    name: str = string()
    count: int = int32()
    assignments: tuple[CreatePartitionsAssignment, ...] | None = array(CreatePartitionsAssignment, nullable="0+")


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Let these topics grow, or only say whether that would work."""

    topics: tuple[CreatePartitionsTopic, ...] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@entity
class CreatePartitionsTopicResult:
    """What became of one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """One row for each topic named."""

    throttle_time_ms: int = int32()
    results: tuple[CreatePartitionsTopicResult, ...] = array(CreatePartitionsTopicResult)
