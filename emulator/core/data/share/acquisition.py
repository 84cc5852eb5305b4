"""The acquisition of records by a fetch: available ones that are in flight, then new ones (KIP-932).

Rules: `SharePartition.acquire`, and KIP-1206 for the exact number of records.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

from koordinator.wire.values import value

from .batches import Acquired, Batch, Delivery, RecordState, merged, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .in_flight import InFlightBatches

THROTTLED_MIN = 2
"""The lowest delivery count from which deliveries are throttled."""


@value
class Limits:
    """The limits of a group.

    They are its deliveries of a record, its records in flight, the length of a lock in ms, whether members may renew
    locks, and whether records that it gives up become dead letters (KIP-1191).
    """

    deliveries: int
    in_flight: int
    lock_ms: int
    renews: bool = True
    has_dead_letters: bool = False

    @property
    def given_up(self) -> RecordState:
        """The state of records that are rejected, or delivered too often."""
        return RecordState.ARCHIVING if self.has_dead_letters else RecordState.ARCHIVED

    @property
    def throttled_from(self) -> int:
        """The delivery count from which records are delivered in ever smaller parts."""
        return max(THROTTLED_MIN, (self.deliveries + 1) // 2)


class ReadBatches(Protocol):
    """Successive batches of a log, each as its first and last offset."""

    def __len__(self) -> int:
        """Return their number."""

    def __getitem__(self, index: int, /) -> tuple[int, int]:
        """Return a batch."""


@value
class Read:
    """Records that were read from `offset` on: first and last offset of each batch of the log, and the limits.

    At most `records_max` records are acquired, in batches of `batch_size`: with `is_exact` no more than that, else
    whole batches of the log (KIP-1206). The `aborted` batches of the log are archived.
    """

    offset: int
    batches: ReadBatches
    records_max: int
    batch_size: int
    is_exact: bool = False
    aborted: Sequence[tuple[int, int]] = ()

    def end_of_batch(self, offset: int) -> int:
        """Return the last offset of the batch of the log that contains `offset`, else `offset`."""
        at = self.after(offset) - 1
        return max(offset, self.batches[at][1]) if at >= 0 else offset

    def after(self, offset: int) -> int:
        """Return the index of the first batch of the log that begins after `offset`."""
        return bisect_right(self.batches, offset, key=itemgetter(0))


class Acquisition:
    """A fetch of a member that acquires records in flight, from what was read. Their locks begin `now` (ms)."""

    def __init__(self, records: InFlightBatches, now: int, member_id: str, read: Read, limits: Limits) -> None:
        self._records = records
        self._until = now + limits.lock_ms
        self._member_id = member_id
        self._read = read
        self._limits = limits

    def acquire(self) -> list[Acquired]:
        """Acquire records, and return the parts to deliver; their locks begin. Kafka: `acquire`."""
        read, records = self._read, self._records
        if read.records_max <= 0 or not read.batches or read.batches[-1][1] < records.start:
            return []
        wanted, last = min(read.records_max, self._limits.in_flight - records.in_flight), read.batches[-1][1]
        if wanted <= 0:
            # no new records, but those between the ones in flight
            wanted, last = min(read.records_max, records.end - read.offset + 1), min(last, records.end)
        assert wanted > 0, f"offset {read.offset} is read at the limit of records in flight: see can_acquire"
        base = read.batches[0][0]
        self._archive_stale(read.offset, base)
        floor = records.floor(base)
        first = max(base, records.start) if floor < 0 else base
        if floor >= 0 and records.batches[floor].last >= base:
            first = records.batches[floor].first
        touched = records.between(min(base, first), last)
        if touched:
            rows = self._acquire_between(touched, first, last, wanted)
        else:
            rows = self._acquire_new(first, last, wanted)
        if rows:
            records.move_gap(rows[-1].last + 1)
        for aborted in read.aborted if rows else ():
            records.archive(*aborted, RecordState.ACQUIRED, records.touching(*aborted))
        return without(rows, read.aborted) if read.aborted else rows

    def _acquire_between(self, touched: list[Batch], first: int, last: int, wanted: int) -> list[Acquired]:
        """Acquire what is available in these batches and what was never stored between them, then new records."""
        rows: list[Acquired] = []
        base, left, expected = self._read.batches[0][0], wanted, first
        for batch in touched:
            if left > 0 and expected < batch.first and self._records.gap_start() is not None:
                new = self._acquire_new(expected, batch.first - 1, left)
                rows += new
                left -= _size(new)
            expected = batch.last + 1
            if left <= 0:
                break
            is_throttled = self._is_throttled(batch, base, last)
            if is_throttled and rows:
                return rows
            parts = self._acquire_batch(batch, base, last, left, by_offset=is_throttled)
            rows += parts
            left -= _size(parts)
            if is_throttled and parts:
                return rows
        if left > 0 and touched[-1].last < last:
            rows += self._acquire_new(touched[-1].last + 1, last, left)
        return rows

    def _acquire_batch(self, batch: Batch, first: int, last: int, wanted: int, *, by_offset: bool) -> list[Acquired]:
        """Acquire a batch in flight, or its available offsets if it is split or not wanted as a whole."""
        is_cut = self._read.is_exact and batch.size > wanted
        if not batch.is_split and not batch.deliveries[0].is_available:
            return []
        if by_offset or is_cut or not batch.lies_within(first, last):
            batch.split()
        if batch.is_split:
            return self._acquire_offsets(batch, first, last, wanted)
        self._take(batch.deliveries)
        batch.most = batch.deliveries[0].count
        return [Acquired(batch.first, batch.last, batch.most)]

    def _acquire_new(self, first: int, last: int, wanted: int) -> list[Acquired]:
        """Acquire records that were not in flight, as new batches. Kafka: `acquireNewBatchRecords`, `createBatches`."""
        read, records = self._read, self._records
        if not records.batches:
            first = max(first, records.end)
        end = last
        if wanted < last - first + 1:
            end = read.end_of_batch(first + wanted - 1)
            if records.gap_start() is not None:
                end = min(end, last)
        if end < first:
            return []
        if read.is_exact and end - first + 1 > wanted:
            rows = [Acquired(first, first + wanted - 1, 1)]
            batch = Batch.whole(Delivery(first, end, RecordState.AVAILABLE, 0))
            batch.split()
            self._take(batch.deliveries[:wanted])
            batch.most = 1
            records.note_available(first + wanted)
            records.put(batch)
        else:
            rows = [Acquired(*each, 1) for each in _cut(read, first, end)]
            for row in rows:
                if row.size > 0:
                    delivery = Delivery(row.first, row.last, RecordState.AVAILABLE, 0)
                    self._take([delivery])
                    records.put(Batch.whole(delivery))
        if records.batches[0].first == first:
            records.start = max(records.start, first)
        records.end = max(records.end, end)
        records.move_gap(rows[-1].last + 1)
        return rows

    def _acquire_offsets(self, batch: Batch, first: int, last: int, wanted: int) -> list[Acquired]:
        """Acquire offsets of a split batch. Kafka: `acquireSubsetBatchRecords`.

        Records that were delivered often come in ever smaller parts, and the last delivery of a record comes alone: a
        record that makes its consumers fail shall not take others with it.
        """
        limits, throttled_max = self._limits, -1
        is_limited = limits.deliveries > THROTTLED_MIN
        taken: list[Delivery] = []
        for each in batch.between(max(first, self._records.available_from), last):
            if not each.is_available:
                continue
            if is_limited and each.count == limits.deliveries - 1 and taken:
                break
            if each.count >= limits.throttled_from and throttled_max < 0:
                throttled_max = max(1, batch.size >> (each.count - limits.throttled_from + 1))
            taken.append(each)
            is_last = is_limited and each.count + 1 == limits.deliveries
            if is_last or len(taken) == throttled_max or (self._read.is_exact and len(taken) == wanted):
                break
        self._take(taken)
        batch.most = max([batch.most, *(each.count for each in taken)])
        return merged(Acquired(each.first, each.last, each.count) for each in taken)

    def _take(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            lock = self._records.locks.begin(self._until, deliveries[0].first, deliveries[-1].last)
            for each in deliveries:
                each.acquire(self._member_id, lock)

    def _is_throttled(self, batch: Batch, first: int, last: int) -> bool:
        """Return whether an available record of the batch has a delivery count that throttles deliveries."""
        throttled_from = self._limits.throttled_from
        if batch.most < throttled_from:
            return False
        deliveries = batch.between(first, last) if batch.is_split else batch.deliveries
        return any(each.is_available and each.count >= throttled_from for each in deliveries)

    def _archive_stale(self, offset: int, base: int) -> None:
        """Archive available records before the first batch of the log that was read: the log has them no more."""
        if self._records.batches and offset < base:
            stale = self._records.touching(offset, base - 1)
            self._records.archive(offset, base - 1, RecordState.AVAILABLE, stale)


def _size(rows: Iterable[Acquired]) -> int:
    return sum(row.size for row in rows)


def _cut(read: Read, first: int, last: int) -> Iterable[tuple[int, int]]:
    """Yield the batches in which new records are acquired: whole batches of the log, as many as fill `batch_size`.

    In exact mode all are one batch. A size below 1 is filled by nothing: the first batch is empty, and a negative size
    begins again with batches of the log before `first`.
    """
    size = read.batch_size
    if not read.is_exact and last - first + 1 > size:
        begin = read.after(first) if size > 0 else 0
        for index in range(begin, read.after(last)):
            base = read.batches[index][0]
            if base - first >= size:
                yield first, base - 1
                first = base
    yield first, last
