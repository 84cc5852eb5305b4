"""Operations that read the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...trace.trace import Trace


class Events:
    """Reads the trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def read(self, _now: int, *, since: int = 0, group: str | None = None) -> list[dict[str, object]]:
        """Return the events after sequence number `since`, oldest first, of one group if it is given."""
        return self._trace.events(since, group)

    def header(self, _now: int) -> dict[str, object]:
        """Return the first line of a trace file: schema version, seed, versions."""
        return dict(self._trace.header)
