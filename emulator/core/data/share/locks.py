"""The locks of acquired records, in the order in which they end (Kafka: `AcquisitionLockTimerTask`)."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

from koordinator.wire.values import mutable

if TYPE_CHECKING:
    from collections.abc import Iterator


@mutable
class RecordLock:
    """The lock of records from `first` to `last`, which ends at `deadline` (ms). It still holds `held` of them."""

    deadline: int
    first: int
    last: int
    held: int = 0
    is_expired: bool = False


class RecordLocks:
    """The locks of a share partition. One that holds no record any more is forgotten when it is the next."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, RecordLock]] = []
        self._numbers = count()

    def begin(self, deadline: int, first: int, last: int) -> RecordLock:
        """Return a new lock for records from `first` to `last`, which holds none yet."""
        lock = RecordLock(deadline, first, last)
        heapq.heappush(self._heap, (deadline, next(self._numbers), lock))
        return lock

    @property
    def deadline(self) -> int | None:
        """The time in ms at which the next lock expires, or None."""
        while self._heap and not self._heap[0][2].held:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expire(self, now: int) -> Iterator[RecordLock]:
        """Yield the locks that have expired; they are forgotten."""
        while (deadline := self.deadline) is not None and deadline <= now:
            lock = heapq.heappop(self._heap)[2]
            lock.is_expired = True
            yield lock
