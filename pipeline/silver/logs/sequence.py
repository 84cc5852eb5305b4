"""The sequence numbers of a log's events."""

from __future__ import annotations

NODE_BITS = 11
"""Bits of `seq` that distinguish the brokers of a cluster; the others are microseconds."""

NODE_MASK = (1 << NODE_BITS) - 1

LATE_US = 500
"""Microseconds that `seq` adds in the first millisecond of a file, where the file before it may have events.

Two files that begin in the same millisecond would share numbers; no rotation cuts a log so small.
"""


class Sequence:
    """Numbers the events of a broker, or of the clients, in one file.

    A number is the time in microseconds, at least one more than that of the event before it; then the broker. So it
    depends neither on where a log was split into files nor on the files' names, and the logs of several brokers can be
    merged. The first events of a file may share a millisecond with the end of the file before. A file that continues
    follows `last_seq` as if it were read at once.
    """

    def __init__(self, node: int | None, last_seq: int | None = None) -> None:
        self._node = (node or 0) & NODE_MASK
        self._continues = last_seq is not None
        self._ahead_us = None if last_seq is None else last_seq >> NODE_BITS
        self._first_ms: int | None = None
        self._count = 0

    def number(self, clock_us: int) -> int:
        """Return the number of the next event."""
        self._count += 1
        ms = clock_us // 1000
        self._first_ms = ms if self._first_ms is None else self._first_ms
        late_us = LATE_US if ms == self._first_ms and not self._continues else 0
        ahead_us = clock_us + late_us - self._count
        self._ahead_us = ahead_us if self._ahead_us is None else max(self._ahead_us, ahead_us)
        return (self._ahead_us + self._count) << NODE_BITS | self._node
