"""The APIs served here, and how each of their versions is translated; which versions is a matter of the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS, ApiKey

from . import (
    delete_topics,
    describe_configs,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    sync_group,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.schema import Message

    from .numbering import Numbering


def same_request(request: Message, version: int) -> Message:
    """Versions differ in fields alone, and their defaults say what was meant."""
    del version
    return request


def same_response(response: Message, version: int, numbering: Numbering) -> Message:
    """Versions differ in fields alone."""
    del version, numbering
    return response


@dataclass(frozen=True, slots=True)
class Served:
    """How the versions of one API are translated: to the one shape the core serves, and back."""

    ask: Callable[[Any, int], Message] = same_request
    answer: Callable[[Any, int, Numbering], Message] = same_response


_TRANSLATED = {
    ApiKey.METADATA: Served(ask=metadata.ask),
    ApiKey.LIST_OFFSETS: Served(answer=list_offsets.answer),
    ApiKey.DELETE_TOPICS: Served(ask=delete_topics.ask, answer=delete_topics.answer),
    ApiKey.DESCRIBE_CONFIGS: Served(answer=describe_configs.answer),
    ApiKey.FIND_COORDINATOR: Served(ask=find_coordinator.ask, answer=find_coordinator.answer),
    ApiKey.JOIN_GROUP: Served(ask=join_group.ask, answer=join_group.answer),
    ApiKey.SYNC_GROUP: Served(answer=sync_group.answer),
    ApiKey.HEARTBEAT: Served(answer=heartbeat.answer),
    ApiKey.LEAVE_GROUP: Served(ask=leave_group.ask, answer=leave_group.answer),
    ApiKey.OFFSET_COMMIT: Served(answer=offset_commit.answer),
    ApiKey.OFFSET_FETCH: Served(ask=offset_fetch.ask, answer=offset_fetch.answer),
}

SERVED: dict[int, Served] = {key: _TRANSLATED.get(ApiKey(key), Served()) for key in APIS}
"""By api key."""
