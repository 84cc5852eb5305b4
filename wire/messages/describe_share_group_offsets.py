"""DescribeShareGroupOffsets (api key 90), versions 0-1, flexible (KIP-932).

v1 lag (KIP-1226)
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_


@entity
class DescribeShareGroupOffsetsRequestTopic:
    """A topic with its partitions."""

    topic_name: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class DescribeShareGroupOffsetsRequestGroup:
    """A group; null topics are all of its topics."""

    group_id: str = string()
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    """A request for the start offsets of groups."""

    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = array(DescribeShareGroupOffsetsRequestGroup)


@entity
class DescribeShareGroupOffsetsResponsePartition:
    """The start offset of one partition, or an error; lag, in records, is -1 if unknown."""

    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@entity
class DescribeShareGroupOffsetsResponseTopic:
    """A topic with its partitions."""

    topic_name: str = string()
    topic_id: UUID = uuid_()
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = array(
        DescribeShareGroupOffsetsResponsePartition
    )


@entity
class DescribeShareGroupOffsetsResponseGroup:
    """A group with its topics, or an error."""

    group_id: str = string()
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """The start offsets."""

    throttle_time_ms: int = int32()
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = array(DescribeShareGroupOffsetsResponseGroup)
