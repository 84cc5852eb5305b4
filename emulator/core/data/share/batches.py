"""Batches of records in flight: their states and their holders.

Records that were acquired together are a *batch*. They share one state until a part of them is treated differently; the
batch is then split, and each offset has a state of its own (Kafka's `InFlightBatch` and `InFlightState`).
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING

from koordinator.wire.values import mutable, value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .acquisition import Limits
    from .locks import RecordLock

NOBODY = ""
"""The member id of records without a holder."""


class RecordState(IntEnum):
    """The state of a record; the numbers are those of stored state batches."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Given up, and being written as a dead letter (KIP-1191)."""
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Whether the record is done with."""
        return self in {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


@value
class StateBatch:
    """The state and delivery count of the offsets from `first` to `last`, as the share coordinator stores them."""

    first: int
    last: int
    state: int
    count: int


@value
class Acquired:
    """Offsets from `first` to `last` that a fetch has acquired, for their delivery number `count`."""

    first: int
    last: int
    count: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1


@value
class Change:
    """The holder of records before a change that is being written, and the delivery count limit at its time."""

    member_id: str
    limit: int


@mutable
class Delivery:
    """The state of the offsets from `first` to `last`, of a whole batch or of one offset.

    While a `change` of acquired records is being written, `state` is already the new one.
    """

    first: int
    last: int
    state: RecordState
    count: int
    member_id: str = NOBODY
    lock: RecordLock | None = None
    change: Change | None = None
    was_archived: bool = False

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether a fetch may acquire the records."""
        return self.state is RecordState.AVAILABLE and self.change is None

    @property
    def is_done(self) -> bool:
        """Whether the records are in a final state that is stored."""
        return self.state.is_final and self.change is None

    @property
    def stored(self) -> StateBatch:
        """The state to store."""
        return StateBatch(self.first, self.last, self.state, self.count)

    def acquire(self, member_id: str, lock: RecordLock) -> None:
        """Give the records to a member: one more delivery."""
        self.state, self.member_id = RecordState.ACQUIRED, member_id
        self.count += 1
        self.locked_by(lock)

    def locked_by(self, lock: RecordLock) -> None:
        """Replace the lock."""
        self.unlock()
        self.lock = lock
        lock.held += self.size

    def unlock(self) -> None:
        """End the lock, if there is one."""
        if self.lock is not None:
            self.lock.held -= self.size
            self.lock = None

    def release(self, state: RecordState, limits: Limits) -> None:
        """Take the records from their member, without a lock. Available ones are given up after the last delivery."""
        is_last = state is RecordState.AVAILABLE and self.count >= limits.deliveries
        self.state, self.member_id = limits.given_up if is_last else state, NOBODY

    def begin(self, state: RecordState, limits: Limits) -> None:
        """Begin a change that has to be written; the lock goes on."""
        self.change = Change(self.member_id, limits.deliveries)
        self.release(state, limits)

    def complete(self, *, is_written: bool) -> None:
        """End the change. Unless it was written, the member has the records again, or none if the lock has expired."""
        change, self.change = self.change, None
        assert change is not None, f"offset {self.first} has no change to complete"
        if is_written or self.was_archived:
            self.unlock()
        elif self.lock is not None and self.lock.is_expired:
            # without a dead letter: Kafka archives records without a holder
            self.state = RecordState.ARCHIVED if self.count >= change.limit else RecordState.AVAILABLE
            self.member_id = NOBODY
            self.unlock()
        else:
            self.state, self.member_id = RecordState.ACQUIRED, change.member_id

    def archive(self) -> None:
        """Archive the records at once, whatever is being written."""
        self.was_archived = True
        self.state, self.member_id = RecordState.ARCHIVED, NOBODY
        self.unlock()

    def each(self) -> list[Delivery]:
        """Return a delivery of its own for each offset, with the same lock."""
        lock = self.lock if self.state is RecordState.ACQUIRED else None
        return [
            Delivery(offset, offset, self.state, self.count, self.member_id, lock, was_archived=self.was_archived)
            for offset in range(self.first, self.last + 1)
        ]


@mutable
class Batch:
    """Records that were acquired together: one delivery, or if it `is_split` one for each offset."""

    first: int
    last: int
    deliveries: list[Delivery]
    is_split: bool = False
    most: int = 0
    """The highest delivery count that one of the records may have."""
    _done: int = field(default=0, init=False)

    @classmethod
    def whole(cls, delivery: Delivery) -> Batch:
        """Return a batch with one state."""
        return cls(delivery.first, delivery.last, [delivery], most=delivery.count)

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1

    def split(self) -> None:
        """Give each offset a state of its own."""
        if not self.is_split:
            self.deliveries, self.is_split = self.deliveries[0].each(), True

    def between(self, first: int, last: int) -> Iterable[Delivery]:
        """Return the deliveries of a split batch from offset `first` to `last`."""
        return self.deliveries[max(0, first - self.first) : max(0, last - self.first + 1)]

    def lies_within(self, first: int, last: int) -> bool:
        """Return whether all offsets are between `first` and `last`."""
        return first <= self.first and self.last <= last

    def contains(self, offset: int) -> bool:
        """Return whether this is a batch of records before and from `offset` on."""
        return self.first < offset <= self.last

    def at(self, offset: int) -> Delivery:
        """Return the delivery of an offset; after the batch the last one."""
        return self.deliveries[min(offset - self.first, len(self.deliveries) - 1)]

    def done_before(self) -> int:
        """Return the first offset that is not done, or the offset after the batch."""
        while self._done < len(self.deliveries) and self.deliveries[self._done].is_done:
            self._done += 1
        return self.first + self._done if self.is_split else (self.last + 1 if self._done else self.first)


def merged(rows: Iterable[Acquired]) -> list[Acquired]:
    """Return rows in which neighbouring offsets with equal counts are one."""
    out: list[Acquired] = []
    for row in rows:
        if out and out[-1].last + 1 == row.first and out[-1].count == row.count:
            out[-1] = Acquired(out[-1].first, row.last, row.count)
        else:
            out.append(row)
    return out


def without(rows: Iterable[Acquired], ranges: Iterable[tuple[int, int]]) -> list[Acquired]:
    """Return the parts of rows outside these ranges of offsets; both are in ascending order."""
    out: list[Acquired] = []
    removed = list(ranges)
    at = 0
    for row in rows:
        while at < len(removed) and removed[at][1] < row.first:
            at += 1
        first, index = row.first, at
        while index < len(removed) and removed[index][0] <= row.last:
            if first < removed[index][0]:
                out.append(Acquired(first, removed[index][0] - 1, row.count))
            first = max(first, removed[index][1] + 1)
            index += 1
        if first <= row.last:
            out.append(Acquired(first, row.last, row.count))
    return out
