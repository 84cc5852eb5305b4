"""ListPartitionReassignments (api key 46), version 0, flexible (KIP-455)."""

from ..schema import array, entity, int16, int32, message, string


@entity
class ListPartitionReassignmentsTopics:
    """A topic, with the partitions to list."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(int32)


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """A request for ongoing reassignments; null topics are all."""

    timeout_ms: int = int32(default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


@entity
class OngoingPartitionReassignment:
    """An ongoing reassignment."""

    partition_index: int = int32()
    replicas: tuple[int, ...] = array(int32)
    adding_replicas: tuple[int, ...] = array(int32)
    removing_replicas: tuple[int, ...] = array(int32)


@entity
class OngoingTopicReassignment:
    """The ongoing reassignments of a topic."""

    name: str = string()
    partitions: tuple[OngoingPartitionReassignment, ...] = array(OngoingPartitionReassignment)


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The ongoing reassignments."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: tuple[OngoingTopicReassignment, ...] = array(OngoingTopicReassignment)
