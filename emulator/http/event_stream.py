"""The trace as server-sent events. The live page follows one such stream for its timeline and its panels.

A stream takes a few events from the trace at a time, and the next ones once its client has read these. So a client that
does not read costs some KiB. After `UNREAD_S` its stream ends with an event that says so; the system keeps it for the
client, because a stream never fills its socket's buffer.
"""

from __future__ import annotations

from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import trio
from starlette.responses import StreamingResponse

from ..pages.feed import Feed
from .connection import UNREAD_S, connection_of
from .plain import to_json
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.types import Send

    from ..server.cluster_registry import RegisteredCluster
    from ..trace.trace import Trace

KEEP_ALIVE_S = 15
"""The interval of comments without events, so that proxies keep the connection open."""

STATE_INTERVAL_S = 0.4
"""The minimum time between two states of a watched group."""

PAGE_INTERVAL_S = 0.1
"""The minimum time between two changes of the live page."""

BATCH_EVENTS = 50
"""The events that are taken from the trace at a time."""

STREAMS_MAX = 100
"""The most streams that are open at once."""

CHUNK_CHARS = 16 * 1024
"""Events are sent together up to about this size."""

UNREAD = {"detail": f"nothing was read for {UNREAD_S:g} s; continue after the last id"}
"""The data of the last event, named `closed`, of a stream that is not read."""

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


class EventStreams:
    """All open streams of the server."""

    def __init__(self) -> None:
        self.number = 0

    def stream_of(
        self,
        request: Request,
        registered: RegisteredCluster,
        since: int = 0,
        group: str | None = None,
        watch: str | None = None,
    ) -> StreamingResponse:
        """Return a stream of all present and future events after `since`, each with its `seq` as id.

        With `watch`, the name of a group or "", it is the stream of the live page: events named `page` carry what
        changes there (`Feed.take`), those named `group` the state of the watched group, at first and after changes.
        Raises Problem if too many streams are open.
        """
        if self.number >= STREAMS_MAX:
            detail = f"{self.number} event streams are open, which is the limit; close one, or read the trace without"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail)
        events = _events(registered, since, group) if watch is None else _page(registered, watch)
        return EventStream(self, request, events)


class EventStream(StreamingResponse):
    """A streaming response that closes its source at the end, also when it is cancelled or not read."""

    def __init__(self, streams: EventStreams, request: Request, events: AsyncGenerator[str, None]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})
        self._streams = streams
        self._events = events
        self._connection = connection_of(request.scope)

    async def stream_response(self, send: Send) -> None:
        """Send the stream."""
        self._streams.number += 1
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with aclosing(self._events):
                async for text in self._events:
                    with trio.move_on_after(UNREAD_S) as limit:
                        await self._connection.wait_until_read()
                    if limit.cancelled_caught:
                        text = f"event: closed\ndata: {to_json(UNREAD)}\n\n"  # noqa: PLW2901
                    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                    if limit.cancelled_caught:
                        break
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._streams.number -= 1


def _last_of_batch(trace: Trace, since: int) -> int:
    """Return the sequence number up to which events after `since` are taken."""
    return min(max(since, trace.oldest_seq - 1) + BATCH_EVENTS, trace.last_seq)


async def _events(registered: RegisteredCluster, since: int, group: str | None) -> AsyncGenerator[str, None]:
    trace = registered.cluster.trace

    def has_more() -> bool:
        return trace.last_seq > since

    # the client learns at once that the stream is open
    yield ": the trace\n\n"
    while not registered.ended.is_set():
        if await registered.cluster.server.wait_for(has_more, KEEP_ALIVE_S):
            last = _last_of_batch(trace, since)
            text = ""
            for event in trace.events(since, group, last):
                text += f"id: {event['seq']}\ndata: {to_json(event)}\n\n"
                if len(text) > CHUNK_CHARS:
                    yield text
                    text = ""
            if text:
                yield text
            else:
                # events of other groups
                await trio.lowlevel.checkpoint()
            since = last
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
            while has_more():
                last = _last_of_batch(trace, since)
                change = feed.take(trace.events(since, until=last))
                yield f"event: page\ndata: {to_json(change)}\n\n"
                since = last
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
