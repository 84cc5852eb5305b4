"""The trace as server-sent events. The live page follows one such stream for its timeline and its panels."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import trio
from starlette.responses import StreamingResponse

from ..pages.feed import Feed
from .plain import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Send

    from ..server.cluster_registry import RegisteredCluster

KEEP_ALIVE_S = 15
"""The interval of comments without events, so that proxies keep the connection open."""

STATE_INTERVAL_S = 0.4
"""The minimum time between two states of a watched group."""

PAGE_INTERVAL_S = 0.1
"""The minimum time between two changes of the live page."""

BATCH_LINES = 500
"""The lines of a trace that are prepared for the page without a pause, in which clients are served."""

MEDIA_TYPE = "text/event-stream"

GROUP_PARTS = {
    "described": "groups.describe",
    "timers": "clocks.timers",
    "clock": "clocks.read",
    "offsets": "groups.offsets",
}
"""Operations whose results make up the state of a group, with the group as argument."""

CLUSTER_PARTS = {
    "topics": "topics.describe",
    "puppets": "puppets.list",
    "rules": "faults.rules",
    "holds": "holds.all",
}
"""Further parts of the state, from operations without arguments."""


def stream_of(
    registered: RegisteredCluster, since: int = 0, group: str | None = None, watch: str | None = None
) -> StreamingResponse:
    """Return a stream of all present and future events after `since`, each with its `seq` as id.

    With `watch`, the name of a group or "", it is the stream of the live page: events named `page` carry what changes
    there (`Feed.take`), those named `group` the state of the watched group, at first and after changes.
    """
    events = _events(registered, since, group) if watch is None else _page(registered, watch)
    return EventStream(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


class EventStream(StreamingResponse):
    """A streaming response that closes its source at the end, also when it is cancelled."""

    async def stream_response(self, send: Send) -> None:
        """Send the stream."""
        async with aclosing(cast("AsyncGenerator[str, None]", self.body_iterator)):
            await super().stream_response(send)


async def _events(registered: RegisteredCluster, since: int, group: str | None) -> AsyncGenerator[str, None]:
    trace = registered.cluster.trace

    def has_more() -> bool:
        return trace.last_seq > since

    # the client learns at once that the stream is open
    yield ": the trace\n\n"
    while not registered.ended.is_set():
        if await registered.cluster.server.wait_for(has_more, KEEP_ALIVE_S):
            newest = trace.last_seq
            for event in trace.events(since, group):
                yield f"id: {event['seq']}\ndata: {to_json(event)}\n\n"
            since = newest
        else:
            yield ": no new events\n\n"


async def _page(registered: RegisteredCluster, watched: str) -> AsyncGenerator[str, None]:
    trace, feed, since = registered.cluster.trace, Feed(watched), 0

    def has_more() -> bool:
        return trace.last_seq > since

    yield ": the live page\n\n"
    is_state_due, state_at = bool(watched), trio.current_time()
    while not registered.ended.is_set():
        limit_s = max(state_at - trio.current_time(), 0) if is_state_due else KEEP_ALIVE_S
        if await registered.cluster.server.wait_for(has_more, limit_s):
            events, since = trace.events(since), trace.last_seq
            for start in range(0, len(events), BATCH_LINES):
                change = feed.take(events[start : start + BATCH_LINES])
                yield f"event: page\ndata: {to_json(change)}\n\n"
            is_state_due = bool(watched)
            await trio.sleep(PAGE_INTERVAL_S)
        elif not is_state_due:
            yield ": no new events\n\n"
        if is_state_due and trio.current_time() >= state_at:
            state = await _state_of(registered, watched)
            if state is not None:
                yield f"event: group\ndata: {to_json(state)}\n\n"
            is_state_due, state_at = False, trio.current_time() + STATE_INTERVAL_S


async def _state_of(registered: RegisteredCluster, group: str) -> dict[str, Any] | None:
    """Return the state of a group; None if the group does not exist or its coordinator is unavailable."""
    try:
        parts = {
            name: await registered.cluster.call(operation, {"group": group}) for name, operation in GROUP_PARTS.items()
        }
    except ValueError:
        return None
    parts |= {name: await registered.cluster.call(operation, {}) for name, operation in CLUSTER_PARTS.items()}
    return {"group": group, **parts}
