"""ListOffsets (api key 2), versions 0-11, flexible from 6.

v1 one offset with its timestamp, instead of old_style_offsets | v2 isolation_level, throttle_time_ms |
v4 current_leader_epoch, leader_epoch (KIP-320) | v5 OFFSET_NOT_AVAILABLE | v6 flexible |
v7 timestamp -3: the largest (KIP-734) | v8 -4: earliest local (KIP-405) | v9 -5: latest tiered (KIP-1005) |
v10 timeout_ms (KIP-1075) | v11 -6: earliest pending upload (KIP-1023)
"""

from ..schema import array, entity, int8, int16, int32, int64, message, string


@entity
class ListOffsetsPartition:
    """A lookup of the first record at or after timestamp (ms); -1 is the end, -2 the start of the log."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()
    max_num_offsets: int = int32("0", default=1)


@entity
class ListOffsetsTopic:
    """A topic with its partitions."""

    name: str = string()
    partitions: tuple[ListOffsetsPartition, ...] = array(ListOffsetsPartition)


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest:
    """Lookups of offsets by time. replica_id -1 is a consumer; isolation_level 1 ends at the last stable offset."""

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: tuple[ListOffsetsTopic, ...] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+", ignorable=True)


@entity
class ListOffsetsPartitionResponse:
    """The result of one partition; offset and timestamp are -1 without a match."""

    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: tuple[int, ...] = array(int64, "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@entity
class ListOffsetsTopicResponse:
    """A topic with the offsets of its partitions."""

    name: str = string()
    partitions: tuple[ListOffsetsPartitionResponse, ...] = array(ListOffsetsPartitionResponse)


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse:
    """A row for each partition of the request."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...] = array(ListOffsetsTopicResponse)
