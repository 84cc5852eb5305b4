"""AlterPartitionReassignments (api key 45), versions 0-1, flexible (KIP-455).

v1 allow_replication_factor_change (KIP-860)
"""

from ..schema import array, boolean, entity, int16, int32, message, string


@entity
class ReassignablePartition:
    """A partition with its future replicas; null cancels its reassignment."""

    partition_index: int = int32()
    replicas: tuple[int, ...] | None = array(int32, nullable="0+", default=None)


@entity
class ReassignableTopic:
    """A topic, with the partitions to reassign."""

    name: str = string()
    partitions: tuple[ReassignablePartition, ...] = array(ReassignablePartition)


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """A request to move partitions to other brokers."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: tuple[ReassignableTopic, ...] = array(ReassignableTopic)


@entity
class ReassignablePartitionResponse:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@entity
class ReassignableTopicResponse:
    """The results of a topic."""

    name: str = string()
    partitions: tuple[ReassignablePartitionResponse, ...] = array(ReassignablePartitionResponse)


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """A row for each partition."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: tuple[ReassignableTopicResponse, ...] = array(ReassignableTopicResponse)
