"""DeleteTopics (api key 20), versions 0-6, flexible from 4.

v1 throttle_time_ms | v3 TOPIC_DELETION_DISABLED (42 before) | v4 flexible | v5 error_message (KIP-599) |
v6 by name or id (KIP-516)
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, message, string, uuid_


@entity
class DeleteTopicState:
    """A topic by name; by id if the name is null."""

    name: str | None = string(nullable="0+", default=None)
    topic_id: UUID = uuid_()


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    """Topics to delete: topic_names (v0-5) or topics (v6+)."""

    topics: tuple[DeleteTopicState, ...] = array(DeleteTopicState, "6+")
    topic_names: tuple[str, ...] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()


@entity
class DeletableTopicResult:
    """The result of one topic."""

    name: str | None = string(nullable="6+")
    topic_id: UUID = uuid_("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    """A row for each topic of the request."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: tuple[DeletableTopicResult, ...] = array(DeletableTopicResult)
