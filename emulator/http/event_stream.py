"""The trace as server-sent events."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from starlette.responses import StreamingResponse

from .plain import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Send

    from ..server.cluster_registry import RegisteredCluster

KEEP_ALIVE_S = 15
"""A comment is sent after so much silence, so that nobody on the way takes the connection for dead."""

MEDIA_TYPE = "text/event-stream"


def stream_of(hosted: RegisteredCluster, since: int = 0, group: str | None = None) -> StreamingResponse:
    """The events after `since`, and every one that comes, each with its `seq` as id, until somebody hangs up."""
    return Stream(_events(hosted, since, group), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


class Stream(StreamingResponse):
    """A response whose source ends with it, at once, whoever ends it."""

    async def stream_response(self, send: Send) -> None:
        """Send everything there is."""
        async with aclosing(cast("AsyncGenerator[str, None]", self.body_iterator)):
            await super().stream_response(send)


async def _events(hosted: RegisteredCluster, since: int, group: str | None) -> AsyncGenerator[str, None]:
    trace = hosted.cluster.trace

    def has_more() -> bool:
        return trace.last_seq > since

    # who waits for the first event is to know at once that it listens
    yield ": the trace\n\n"
    while not hosted.ended.is_set():
        if not await hosted.cluster.server.wait_for(has_more, KEEP_ALIVE_S):
            yield ": nothing new\n\n"
        newest = trace.last_seq
        for event in trace.events(since, group):
            yield f"id: {event['seq']}\ndata: {to_json(event)}\n\n"
        since = newest
