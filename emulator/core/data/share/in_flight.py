"""The records in flight of a share partition, in ascending order, and the offsets between which they lie (KIP-932).

Offsets before `start` are finished. Those from `start` to `end` are in flight, whatever their state. After loading,
there may be offsets between them that were never stored: the *gap* (Kafka: `GapWindow`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from operator import attrgetter
from typing import TYPE_CHECKING

from .batches import Batch, Delivery, RecordState, StateBatch
from .locks import RecordLocks

if TYPE_CHECKING:
    from collections.abc import Iterable

STORED_MAX = 1_000_000
"""The most offsets in flight that are loaded. Kafka has no limit; but any range can be stored, and each of its offsets
may need a state."""

_first = attrgetter("first")


class InvalidStateError(ValueError):
    """The stored state of a share partition contradicts itself."""


class InFlightBatches:
    """The records in flight, as they were loaded: a start offset, and batches with their states.

    Raises InvalidStateError if the batches are not ascending from the start offset, if they end STORED_MAX after it or
    later, or if a state is unknown.
    """

    def __init__(self, start: int, stored: Iterable[StateBatch] = ()) -> None:
        self.start = self.end = start
        """The first offset that is not finished, and the last one that is or was in flight."""
        self.complete_count = 0
        """The number of finished records from the start offset on."""
        self.batches: list[Batch] = []
        """In ascending order, without overlaps."""
        self.available_from = start
        """Offsets before this one are not available."""
        self.locks = RecordLocks()
        # after loading, the first offset that was never stored and may be acquired, and the end at that time
        self._gap: tuple[int, int] | None = None
        self._load(stored)

    def _load(self, stored: Iterable[StateBatch]) -> None:
        gap, expected = -1, self.start
        for each in stored:
            if each.first < expected or each.last < each.first or each.last - self.start >= STORED_MAX:
                raise InvalidStateError(f"{each} does not follow offset {expected - 1}, or not closely")
            try:
                state = RecordState(each.state)
            except ValueError as error:
                raise InvalidStateError(str(error)) from error
            if gap < 0 and each.first > expected:
                gap = expected
            expected = each.last + 1
            self.batches.append(Batch.whole(Delivery(each.first, each.last, state, each.count)))
            self.complete_count += each.last - each.first + 1 if state.is_final else 0
        if self.batches:
            self.end = self.batches[-1].last
            self._gap = (gap, self.end) if gap >= 0 else None
            self.advance()

    @property
    def in_flight(self) -> int:
        """The number of offsets in flight: all from the start offset to the end offset."""
        return self.end - self.start + 1 if self.batches else 0

    @property
    def next_fetch_offset(self) -> int:
        """The offset from which a fetch reads: the first that is available or was never stored, else the next new one.

        Kafka: `nextFetchOffset`.
        """
        if not self.batches or self.start > self.batches[-1].last:
            return self.end
        found = self._first_available()
        return self.end + 1 if found is None else max(found, self.start)

    def _first_available(self) -> int | None:
        gap = self.gap_start()
        searched = self.available_from if gap is None else min(gap, self.available_from)
        for index in range(max(0, self.floor(searched)), len(self.batches)):
            batch = self.batches[index]
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(gap, batch.last + 1)
            if batch.last < self.available_from:
                continue
            if not batch.is_split:
                if batch.deliveries[0].is_available:
                    return batch.first
            else:
                for each in batch.between(self.available_from, batch.last):
                    if each.is_available:
                        self.available_from = each.first
                        return each.first
            self.available_from = batch.last + 1
        return None

    def gap_start(self) -> int | None:
        """Return the first offset that was never stored, as long as nothing beyond the loaded end was acquired."""
        return self._gap[0] if self._gap is not None and self._gap[1] == self.end else None

    def move_gap(self, offset: int) -> None:
        """Note that everything before `offset` was acquired since the state was loaded."""
        if self._gap is not None:
            end = self._gap[1]
            self._gap = (offset, end) if end == self.end and offset <= end else None

    def floor(self, offset: int) -> int:
        """Return the index of the last batch that starts at or before `offset`, or -1."""
        return bisect_right(self.batches, offset, key=_first) - 1

    def between(self, first: int, last: int) -> list[Batch]:
        """Return the batches that start between two offsets."""
        return self.batches[self.floor(first - 1) + 1 : self.floor(last) + 1]

    def note_available(self, offset: int) -> None:
        """Note that the record at `offset` may be available."""
        self.available_from = min(self.available_from, offset)

    def touching(self, first: int, last: int) -> list[Batch]:
        """Return the batches between two offsets, and the one that starts before the first."""
        return self.batches[max(0, self.floor(first)) : self.floor(last) + 1]

    def put(self, batch: Batch) -> None:
        """Add a batch in the place of one with the same first offset, if there is one."""
        at = self.floor(batch.first)
        if at >= 0 and self.batches[at].first == batch.first:
            for each in self.batches[at].deliveries:
                each.unlock()
            self.batches[at] = batch
        else:
            insort(self.batches, batch, key=_first)

    def archive(
        self, first: int, last: int, state: RecordState, batches: Iterable[Batch], *, counts: bool = True
    ) -> None:
        """Archive the records between two offsets that are in this state. Kafka: `archiveRecords`."""
        for batch in batches:
            if not batch.is_split and batch.deliveries[0].state is state and not batch.lies_within(first, last):
                batch.split()
            for each in batch.between(first, last) if batch.is_split else batch.deliveries:
                if each.state is state:
                    each.archive()
                    self.complete_count += each.size if counts else 0

    def truncate(self, log_start: int) -> None:
        """Begin at the start of the log, if it is later: the records before it are deleted.

        Available records before it are archived; those that are held remain so. Kafka: `updateCacheAndOffsets`.
        """
        if log_start <= self.start:
            return
        if self.batches:
            done = sum(self._done_between(batch, log_start) for batch in self.between(0, log_start - 1))
            touched = self.between(0, log_start - 1)
            self.archive(self.start, log_start - 1, RecordState.AVAILABLE, touched, counts=False)
            self.complete_count -= done
        else:
            self.complete_count = 0
        self.start = log_start
        self.end = max(self.end, log_start)

    def _done_between(self, batch: Batch, end: int) -> int:
        """Return the number of records of a batch, from the start offset to before `end`, that are in a final state."""
        deliveries = batch.between(self.start, end - 1) if batch.is_split else batch.deliveries
        return sum(self.counted(each, end) for each in deliveries if each.state.is_final)

    def counted(self, records: Delivery | StateBatch, end: int | None = None) -> int:
        """Return the number of offsets from the start offset on, and before `end`."""
        last = records.last if end is None else min(records.last, end - 1)
        return max(0, last - max(self.start, records.first) + 1)

    def advance(self) -> bool:
        """Move the start offset beyond finished records; return whether there were any.

        Kafka: `maybeUpdateCachedStateAndOffsets`.
        """
        floor = self.floor(self.start)
        if floor < 0 or not self.batches[floor].at(self.start).is_done:
            return False
        last, completed, kept = self._finished()
        if last < 0:
            return False
        if last == self.batches[-1].last:
            self.start = self.end = max(self.start, last + 1)
            self.batches.clear()
            self.complete_count = 0
            return True
        start = last + 1 if last < self.batches[kept].last else self.batches[kept + 1].first
        if last == self.batches[kept].last:
            kept += 1
            if (gap := self.gap_start()) is not None:
                start = min(gap, start)
        self.start = max(self.start, start)
        self.complete_count -= completed
        del self.batches[:kept]
        return True

    def _finished(self) -> tuple[int, int, int]:
        """Return the last offset before which all is finished, how many that completes, and the index of its batch."""
        gap, last, completed, at = self.gap_start(), -1, 0, 0
        for index, batch in enumerate(self.batches):
            if gap is not None and batch.last >= gap:
                break
            end = batch.done_before()
            if end > batch.first:
                last, at = end - 1, index
                completed += max(0, end - max(self.start, batch.first))
            if end <= batch.last:
                break
        return last, completed, at
