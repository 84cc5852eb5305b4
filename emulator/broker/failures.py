"""Bugs of koordinator: an unexpected exception ends one request, is reported once, and marks its cluster.

Kafka answers such a request with UNKNOWN_SERVER_ERROR and goes on. A test must not: its cluster has a bug, so `stop`,
the pytest plugin and `/v1/health` raise or show the first one.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REPORTS_MAX = 10
"""The bugs that are reported; later ones are counted."""

FRAME_SHOWN_MAX = 65_536
"""The longest frame that a report shows, in bytes."""


class BrokerBug(RuntimeError):
    """A bug of koordinator ended requests of a cluster; the text is the first report, the cause its exception."""


class Failures:
    """The bugs of a cluster. `log` gets a report of each; `about` returns the seed and the versions that repeat it."""

    def __init__(self, log: Callable[[str], None], about: Callable[[], Mapping[str, object]] = dict) -> None:
        self._log = log
        self._about = about
        self.count = 0
        self.reports: list[tuple[str, Exception]] = []

    def add(self, place: str, error: Exception, frame: bytes = b"") -> None:
        """Report a bug; `place` says what it ended, and `frame` is the request in flight, if any."""
        self.count += 1
        if len(self.reports) == REPORTS_MAX:
            return
        lines = [f"a bug in koordinator ended {place}: {type(error).__name__}: {error}"]
        if frame:
            shown = frame.hex() if len(frame) <= FRAME_SHOWN_MAX else f"{len(frame)} bytes, too long to show"
            lines.append(f"frame: {shown}")
        lines.append("cluster: " + ", ".join(f"{name} {each}" for name, each in self._about().items()))
        lines.append(
            "repeat it: start a cluster with this seed and version, send the earlier requests of the trace, then the "
            "frame after its length as 4 bytes; report it with these lines and the trace"
        )
        lines += traceback.format_exception(error)
        report = "\n".join(line.rstrip() for line in lines)
        self.reports.append((report, error))
        self._log(report)

    def check(self) -> None:
        """Raise BrokerBug if there was a bug."""
        if self.reports:
            report, error = self.reports[0]
            more = f"{self.count} bugs, the first: " if self.count > 1 else ""
            raise BrokerBug(more + report) from error
