"""The conversion between each version of a message and the one shape that the core serves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS, ApiKey

from . import (
    delete_topics,
    describe_configs,
    find_coordinator,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.messages.heartbeat import HeartbeatResponse
    from koordinator.wire.messages.sync_group import SyncGroupResponse
    from koordinator.wire.schema import Message

    from .error_numbering import Numbering


def unchanged_request(request: Message, version: int) -> Message:
    """Return the request: its versions differ in fields alone, and the defaults of missing fields are right."""
    del version
    return request


def unchanged_response(response: Message, version: int, numbering: Numbering) -> Message:
    """Return the response: its versions differ in fields alone."""
    del version, numbering
    return response


def renumber_error(
    response: HeartbeatResponse | SyncGroupResponse, version: int, numbering: Numbering
) -> HeartbeatResponse | SyncGroupResponse:
    """Return the response with its top-level error code in the configured numbering."""
    del version
    return replace(response, error_code=numbering(response.error_code)) if response.error_code else response


@dataclass(frozen=True, slots=True)
class VersionAdapter:
    """The conversions of one API: a request to the core's shape, a response to the requested version."""

    normalize_request: Callable[[Any, int], Message] = unchanged_request
    render_response: Callable[[Any, int, Numbering], Message] = unchanged_response


_ADAPTED = {
    ApiKey.METADATA: VersionAdapter(metadata.normalize_request),
    ApiKey.LIST_OFFSETS: VersionAdapter(render_response=list_offsets.render_response),
    ApiKey.DELETE_TOPICS: VersionAdapter(delete_topics.normalize_request, delete_topics.render_response),
    ApiKey.DESCRIBE_CONFIGS: VersionAdapter(render_response=describe_configs.render_response),
    ApiKey.FIND_COORDINATOR: VersionAdapter(find_coordinator.normalize_request, find_coordinator.render_response),
    ApiKey.JOIN_GROUP: VersionAdapter(join_group.normalize_request, join_group.render_response),
    ApiKey.SYNC_GROUP: VersionAdapter(render_response=renumber_error),
    ApiKey.HEARTBEAT: VersionAdapter(render_response=renumber_error),
    ApiKey.LEAVE_GROUP: VersionAdapter(leave_group.normalize_request, leave_group.render_response),
    ApiKey.OFFSET_COMMIT: VersionAdapter(render_response=offset_commit.render_response),
    ApiKey.OFFSET_FETCH: VersionAdapter(offset_fetch.normalize_request, offset_fetch.render_response),
}

ADAPTERS: dict[int, VersionAdapter] = {key: _ADAPTED.get(ApiKey(key), VersionAdapter()) for key in APIS}
"""The adapter of each API, by API key."""
