"""OffsetDelete (api key 47), version 0, never flexible.

v0 is the only version, and not flexible (KIP-496).
"""

from ..schema import array, entity, int16, int32, message, string


@entity
class OffsetDeleteRequestPartition:
    """A partition whose offset to delete."""

    partition_index: int = int32()


@entity
class OffsetDeleteRequestTopic:
    """A topic with its partitions."""

    name: str = string()
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@message(key=47, versions="0", flexible="none")
class OffsetDeleteRequest:
    """A group's committed offsets to delete."""

    group_id: str = string()
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@entity
class OffsetDeleteResponsePartition:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@entity
class OffsetDeleteResponseTopic:
    """A topic with the results of its partitions."""

    name: str = string()
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@message(key=47, versions="0", flexible="none")
class OffsetDeleteResponse:
    """The group's error (then without topics), and each partition's."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)
