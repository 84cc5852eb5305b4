"""AlterShareGroupOffsets (api key 91), version 0, flexible (KIP-932)."""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_


@entity
class AlterShareGroupOffsetsRequestPartition:
    """A partition with its new start offset."""

    partition_index: int = int32()
    start_offset: int = int64()


@entity
class AlterShareGroupOffsetsRequestTopic:
    """A topic with its partitions."""

    topic_name: str = string()
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...] = array(AlterShareGroupOffsetsRequestPartition)


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """New start offsets of a group."""

    group_id: str = string()
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = array(AlterShareGroupOffsetsRequestTopic)


@entity
class AlterShareGroupOffsetsResponsePartition:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@entity
class AlterShareGroupOffsetsResponseTopic:
    """A topic with the results of its partitions."""

    topic_name: str = string()
    topic_id: UUID = uuid_()
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...] = array(AlterShareGroupOffsetsResponsePartition)


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """The group's error, and each partition's."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = array(AlterShareGroupOffsetsResponseTopic)
