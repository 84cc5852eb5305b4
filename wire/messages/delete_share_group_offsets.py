"""DeleteShareGroupOffsets (api key 92), version 0, flexible (KIP-932)."""

from uuid import UUID

from ..schema import array, entity, int16, int32, message, string, uuid_


@entity
class DeleteShareGroupOffsetsRequestTopic:
    """A topic whose start offsets to delete."""

    topic_name: str = string()


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """A group's topics whose start offsets to delete."""

    group_id: str = string()
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = array(DeleteShareGroupOffsetsRequestTopic)


@entity
class DeleteShareGroupOffsetsResponseTopic:
    """The result of one topic."""

    topic_name: str = string()
    topic_id: UUID = uuid_()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """The group's error, and each topic's."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = array(DeleteShareGroupOffsetsResponseTopic)
