"""The trace as server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

from koordinator.emulator.control_plane.plain import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from koordinator.emulator.fleet import Hosted

KEEP_ALIVE_S = 15
"""A comment is sent after so much silence, so that nobody on the way takes the connection for dead."""

MEDIA_TYPE = "text/event-stream"


def stream_of(hosted: Hosted, since: int = 0, group: str | None = None) -> StreamingResponse:
    """The events after `since`, and every one that comes, each with its `seq` as id, until somebody hangs up."""
    return StreamingResponse(
        _events(hosted, since, group), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"}
    )


async def _events(hosted: Hosted, since: int, group: str | None) -> AsyncIterator[str]:
    trace = hosted.parts.trace

    def has_more() -> bool:
        return trace.last_seq > since

    # who waits for the first event is to know at once that it listens
    yield ": the trace\n\n"
    while not hosted.has_ended.is_set():
        if not await hosted.parts.shell.wait_for(has_more, KEEP_ALIVE_S):
            yield ": nothing new\n\n"
        newest = trace.last_seq
        for event in trace.events(since, group):
            yield f"id: {event['seq']}\ndata: {to_json(event)}\n\n"
        since = newest
