"""The trace, as it is read from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...trace.trace import Trace


class Events:
    """Reads the trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def read(self, now: int, *, since: int = 0, group: str | None = None) -> list[dict[str, object]]:
        """What happened after sequence number `since`, the oldest first; of one group, if it is given."""
        del now
        return self._trace.events(since, group)

    def header(self, now: int) -> dict[str, object]:
        """The first line of a file of the trace: schema version, seed, versions."""
        del now
        return dict(self._trace.header)
