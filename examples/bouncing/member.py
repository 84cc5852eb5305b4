"""One consumer process: `python -m bouncing.member CLIENT MEMBERSHIP`, the latter a JSON object.

It reports on stdout, one JSON object per line: `at` (seconds since the epoch), `event`, and details (`PROTOCOL` below).
SIGTERM closes its consumer and ends it with status 0. It ends with status 3 when its client gives up, and at once when
its stdin closes, because then its parent has ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from bouncing.clients import CLIENTS, GaveUpError, Membership

if TYPE_CHECKING:
    from collections.abc import Iterable

PROTOCOL = {
    "started": "pid",
    "assigned": "partitions: the assign callback",
    "revoked": "partitions: the revoke or lost callback",
    "consumed": "ranges: [partition, first offset, last offset] for each run of records without a gap",
    "refused": "error: a commit that came in the middle of a rebalance",
    "gave_up": "name, text: the client's own error",
    "closed": "nothing more will come",
}

GAVE_UP = 3


class Reporter:
    """Writes the events; callbacks may come from any thread of a client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, event: str, **details: object) -> None:
        """Write one line and flush it."""
        assert event in PROTOCOL, event
        line = json.dumps({"at": time.time(), "event": event, **details}, separators=(",", ":"))
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def assigned(self, partitions: Iterable[int]) -> None:
        """Report the assign callback."""
        self.say("assigned", partitions=sorted(partitions))

    def revoked(self, partitions: Iterable[int]) -> None:
        """Report the revoke (or lost) callback."""
        self.say("revoked", partitions=sorted(partitions))

    def consumed(self, records: Iterable[tuple[int, int]]) -> None:
        """Report delivered records, if any."""
        ranges = runs(records)
        if ranges:
            self.say("consumed", ranges=ranges)

    def refused(self, error: str) -> None:
        """Report a rejected commit."""
        self.say("refused", error=error)


def runs(records: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Group (partition, offset) pairs into [partition, first, last] runs of consecutive offsets."""
    ranges: list[list[int]] = []
    for partition, offset in records:
        if ranges and ranges[-1][0] == partition and ranges[-1][2] == offset - 1:
            ranges[-1][2] = offset
        else:
            ranges.append([partition, offset, offset])
    return ranges


def end_with_parent() -> None:
    """End this process when its stdin closes, which means that the parent has ended."""
    # not sys.stdin.read(), which holds a lock that the interpreter needs at exit
    os.read(0, 1)
    os._exit(1)


def main() -> int:
    """Consume until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: stop.set())
    threading.Thread(target=end_with_parent, daemon=True).start()
    client, membership = sys.argv[1], Membership(**json.loads(sys.argv[2]))
    reporter = Reporter()
    reporter.say("started", pid=os.getpid())
    try:
        CLIENTS[client](membership, reporter, stop)
    except GaveUpError as error:
        reporter.say("gave_up", name=error.name, text=error.text)
        return GAVE_UP
    reporter.say("closed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
