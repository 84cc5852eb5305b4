"""OffsetForLeaderEpoch (api key 23), versions 0-4, flexible from 4.

v1 leader_epoch in the response | v2 current_leader_epoch, throttle_time_ms (KIP-320) | v3 replica_id |
v4 flexible
"""

from ..schema import array, entity, int16, int32, int64, message, string


@entity
class OffsetForLeaderPartition:
    """A lookup of the end of leader_epoch in a partition."""

    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32()


@entity
class OffsetForLeaderTopic:
    """A topic with its partitions."""

    topic: str = string()
    partitions: tuple[OffsetForLeaderPartition, ...] = array(OffsetForLeaderPartition)


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Lookups of the ends of leader epochs; replica_id -1 is a consumer, -2 a debugging consumer."""

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...] = array(OffsetForLeaderTopic)


@entity
class EpochEndOffset:
    """The largest epoch up to the requested one, and its end offset; -1 and -1 without one."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64(default=-1)


@entity
class OffsetForLeaderTopicResult:
    """A topic with the results of its partitions."""

    topic: str = string()
    partitions: tuple[EpochEndOffset, ...] = array(EpochEndOffset)


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """A row for each partition of the request."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[OffsetForLeaderTopicResult, ...] = array(OffsetForLeaderTopicResult)
