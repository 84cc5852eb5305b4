"""A share partition: the part of a log that a share group reads, and the holder of each record of it (KIP-932).

It reads no clock and sends nothing. A change that the share coordinator has to store is returned as a `StateWrite`;
`complete` brings it into effect, or takes it back. Rules: `SharePartition`.

Offsets before `start` are finished. Those from `start` to `end` are in flight, whatever their state.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Protocol

from koordinator.wire.errors import Error
from koordinator.wire.values import value

from ...refusal import Refusal, RefusedError
from .batches import NOBODY, Acquired, Batch, Delivery, RecordLock, RecordState, StateBatch, merged, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""The types of acknowledgements."""

STATES = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}
"""The state that an acknowledgement gives to a record."""

STORED_MAX = 1_000_000
"""The most offsets in flight that are loaded. Kafka has no limit; but any range can be stored, and each of its offsets
may need a state."""

THROTTLED_MIN = 2
"""The lowest delivery count from which deliveries are throttled."""

NOT_IN_FLIGHT = Refusal(
    Error.INVALID_RECORD_STATE, "Batch record not found. The request batch offsets are not found in the cache."
)
FIRST_BEYOND = Refusal(
    Error.INVALID_REQUEST, "Batch record not found. The first offset in request is past acquired records."
)
LAST_BEYOND = Refusal(
    Error.INVALID_REQUEST, "Batch record not found. The last offset in request is past acquired records."
)
BATCH_NOT_ACQUIRED = Refusal(
    Error.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The batch is not in the acquired state."
)
OFFSET_NOT_ACQUIRED = Refusal(
    Error.INVALID_RECORD_STATE, "The offset cannot be acknowledged. The offset is not acquired."
)
OTHER_BATCH_OWNER = Refusal(Error.INVALID_RECORD_STATE, "Member is not the owner of batch record")
OTHER_OFFSET_OWNER = Refusal(Error.INVALID_RECORD_STATE, "Member is not the owner of offset")
NO_RENEWALS = Refusal(Error.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")

_first = attrgetter("first")


class UnknownStartError(Exception):
    """An acknowledgement begins before the start offset and ends after it, and nothing is in flight there.

    Kafka fails without the batch, and answers the whole request with UNKNOWN_SERVER_ERROR.
    """


class InvalidStateError(ValueError):
    """The stored state of a share partition contradicts itself."""


@value
class Limits:
    """The limits of a group.

    They are its deliveries of a record, its records in flight, the length of a lock in ms, and whether members may
    renew locks.
    """

    deliveries: int
    in_flight: int
    lock_ms: int
    renews: bool = True

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


@value
class Acknowledgement:
    """The acknowledgement of the offsets from `first` to `last`: one type for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def type_of(self, offset: int) -> int:
        """Return the type for an offset."""
        return self.types[offset - self.first] if len(self.types) > 1 else self.types[0]


@dataclass(slots=True, eq=False)
class StateWrite:
    """A write to the share coordinator: start offset, number of completed records from there on, changed states.

    The start offset is that before the change. `changes` are completed with the write. `holders` are the members whose
    locks have ended without an acknowledgement, one for each batch.
    """

    start: int
    complete_count: int
    batches: list[StateBatch]
    changes: list[Delivery] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)


class SharePartition:
    """A share partition with the state that was loaded: start offset, epoch of the state, and what was in flight.

    Raises InvalidStateError if the batches are not ascending from the start offset, if they end STORED_MAX after it or
    later, or if a state is unknown.
    """

    def __init__(self, start: int, state_epoch: int = 0, stored: Iterable[StateBatch] = ()) -> None:
        self.start = self.end = start
        """The first offset that is not finished, and the last one that is or was in flight."""
        self.state_epoch = state_epoch
        self.complete_count = 0
        """The number of finished records from the start offset on."""
        self.found_offset = -1
        """The offset that a fetch has found last in the log."""
        # in ascending order, without overlaps
        self._batches: list[Batch] = []
        # offsets before this one are not available
        self._available_from = start
        # after loading, the first offset that was never stored and may be acquired, and the end at that time
        self._gap: tuple[int, int] | None = None
        self._locks: list[tuple[int, int, RecordLock]] = []
        self._lock_numbers = count()
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
            self._batches.append(Batch.whole(Delivery(each.first, each.last, state, each.count)))
            self.complete_count += each.last - each.first + 1 if state.is_final else 0
        if self._batches:
            self.end = self._batches[-1].last
            self._gap = (gap, self.end) if gap >= 0 else None
            self._advance()

    @property
    def in_flight(self) -> int:
        """The number of offsets in flight: all from the start offset to the end offset."""
        return self.end - self.start + 1 if self._batches else 0

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The batches in flight, in ascending order."""
        return tuple(self._batches)

    @property
    def next_fetch_offset(self) -> int:
        """The offset from which a fetch reads: the first that is available or was never stored, else the next new one.

        Kafka: `nextFetchOffset`.
        """
        if not self._batches or self.start > self._batches[-1].last:
            return self.end
        found = self._first_available()
        return self.end + 1 if found is None else max(found, self.start)

    def can_acquire(self, limits: Limits) -> bool:
        """Return whether a fetch would acquire records if there are new ones."""
        return self.next_fetch_offset != self.end + 1 or self.in_flight < limits.in_flight

    @property
    def lock_deadline(self) -> int | None:
        """The time in ms at which the next lock expires, or None."""
        while self._locks and not self._locks[0][2].held:
            heapq.heappop(self._locks)
        return self._locks[0][0] if self._locks else None

    def _first_available(self) -> int | None:
        gap = self._gap_start()
        searched = self._available_from if gap is None else min(gap, self._available_from)
        for index in range(max(0, self._floor(searched)), len(self._batches)):
            batch = self._batches[index]
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(gap, batch.last + 1)
            if batch.last < self._available_from:
                continue
            if not batch.is_split:
                if batch.deliveries[0].is_available:
                    return batch.first
            else:
                for each in batch.between(self._available_from, batch.last):
                    if each.is_available:
                        self._available_from = each.first
                        return each.first
            self._available_from = batch.last + 1
        return None

    def _gap_start(self) -> int | None:
        """Return the first offset that was never stored, as long as nothing beyond the loaded end was acquired."""
        return self._gap[0] if self._gap is not None and self._gap[1] == self.end else None

    def _move_gap(self, offset: int) -> None:
        if self._gap is not None:
            end = self._gap[1]
            self._gap = (offset, end) if end == self.end and offset <= end else None

    def _floor(self, offset: int) -> int:
        """Return the index of the last batch that starts at or before `offset`, or -1."""
        return bisect_right(self._batches, offset, key=_first) - 1

    def _between(self, first: int, last: int) -> list[Batch]:
        """Return the batches that start between two offsets."""
        return self._batches[self._floor(first - 1) + 1 : self._floor(last) + 1]

    def _is_available_from(self, offset: int) -> None:
        self._available_from = min(self._available_from, offset)

    # -- acquisition ---------------------------------------------------------------------------------------------

    def acquire(self, now: int, member_id: str, read: Read, limits: Limits) -> list[Acquired]:
        """Acquire records for a member, from what was read; their locks begin. Kafka: `acquire`."""
        if read.records_max <= 0 or not read.batches or read.batches[-1][1] < self.start:
            return []
        wanted, last = min(read.records_max, limits.in_flight - self.in_flight), read.batches[-1][1]
        if wanted <= 0:
            # no new records, but those between the ones in flight
            wanted, last = min(read.records_max, self.end - read.offset + 1), min(last, self.end)
        assert wanted > 0, f"offset {read.offset} is read at the limit of records in flight: see can_acquire"
        base = read.batches[0][0]
        self._archive_stale(read.offset, base)
        floor = self._floor(base)
        first = max(base, self.start) if floor < 0 else base
        if floor >= 0 and self._batches[floor].last >= base:
            first = self._batches[floor].first
        turn = _Acquisition(now + limits.lock_ms, member_id, read, limits)
        touched = self._between(min(base, first), last)
        if touched:
            rows = self._acquire_between(turn, touched, first, last, wanted)
        else:
            rows = self._acquire_new(turn, first, last, wanted)
        if rows:
            self._move_gap(rows[-1].last + 1)
        for aborted in read.aborted if rows else ():
            self._archive(*aborted, RecordState.ACQUIRED, self._between(self._first_touched(aborted[0]), aborted[1]))
        return without(rows, read.aborted)

    def _first_touched(self, offset: int) -> int:
        floor = self._floor(offset)
        return self._batches[floor].first if floor >= 0 else offset

    def _acquire_between(
        self, turn: _Acquisition, touched: list[Batch], first: int, last: int, wanted: int
    ) -> list[Acquired]:
        """Acquire what is available in these batches and what was never stored between them, then new records."""
        rows: list[Acquired] = []
        base, left, expected = turn.read.batches[0][0], wanted, first
        for batch in touched:
            if left > 0 and expected < batch.first and self._gap_start() is not None:
                new = self._acquire_new(turn, expected, batch.first - 1, left)
                rows += new
                left -= _size(new)
            expected = batch.last + 1
            if left <= 0:
                break
            is_throttled = self._is_throttled(batch, base, last, turn.limits)
            if is_throttled and rows:
                return rows
            parts = self._acquire_batch(turn, batch, base, last, left, by_offset=is_throttled)
            rows += parts
            left -= _size(parts)
            if is_throttled and parts:
                return rows
        if left > 0 and touched[-1].last < last:
            rows += self._acquire_new(turn, touched[-1].last + 1, last, left)
        return rows

    def _acquire_batch(
        self, turn: _Acquisition, batch: Batch, first: int, last: int, wanted: int, *, by_offset: bool
    ) -> list[Acquired]:
        """Acquire a batch in flight, or its available offsets if it is split or not wanted as a whole."""
        is_cut = turn.read.is_exact and batch.size > wanted
        if not batch.is_split and not batch.deliveries[0].is_available:
            return []
        if by_offset or is_cut or not batch.lies_within(first, last):
            batch.split()
        if batch.is_split:
            return self._acquire_offsets(turn, batch, first, last, wanted)
        self._take(turn, batch.deliveries)
        batch.most = batch.deliveries[0].count
        return [Acquired(batch.first, batch.last, batch.most)]

    def _acquire_new(self, turn: _Acquisition, first: int, last: int, wanted: int) -> list[Acquired]:
        """Acquire records that were not in flight, as new batches. Kafka: `acquireNewBatchRecords`, `createBatches`."""
        read = turn.read
        if not self._batches:
            first = max(first, self.end)
        end = last
        if wanted < last - first + 1:
            end = read.end_of_batch(first + wanted - 1)
            if self._gap_start() is not None:
                end = min(end, last)
        if end < first:
            return []
        if read.is_exact and end - first + 1 > wanted:
            rows = [Acquired(first, first + wanted - 1, 1)]
            batch = Batch.whole(Delivery(first, end, RecordState.AVAILABLE, 0))
            batch.split()
            self._take(turn, batch.deliveries[:wanted])
            batch.most = 1
            self._is_available_from(first + wanted)
            self._insert(batch)
        else:
            rows = [Acquired(*each, 1) for each in _cut(read, first, end)]
            for row in rows:
                delivery = Delivery(row.first, row.last, RecordState.AVAILABLE, 0)
                self._take(turn, [delivery])
                self._insert(Batch.whole(delivery))
        if self._batches[0].first == first:
            self.start = max(self.start, first)
        self.end = max(self.end, end)
        self._move_gap(rows[-1].last + 1)
        return rows

    def _acquire_offsets(self, turn: _Acquisition, batch: Batch, first: int, last: int, wanted: int) -> list[Acquired]:
        """Acquire offsets of a split batch. Kafka: `acquireSubsetBatchRecords`.

        Records that were delivered often come in ever smaller parts, and the last delivery of a record comes alone: a
        record that makes its consumers fail shall not take others with it.
        """
        limits, throttled_max = turn.limits, -1
        is_limited = limits.deliveries > THROTTLED_MIN
        taken: list[Delivery] = []
        for each in batch.between(max(first, self._available_from), last):
            if not each.is_available:
                continue
            if is_limited and each.count == limits.deliveries - 1 and taken:
                break
            if each.count >= limits.throttled_from and throttled_max < 0:
                throttled_max = max(1, batch.size >> (each.count - limits.throttled_from + 1))
            taken.append(each)
            is_last = is_limited and each.count + 1 == limits.deliveries
            if is_last or len(taken) == throttled_max or (turn.read.is_exact and len(taken) == wanted):
                break
        self._take(turn, taken)
        batch.most = max([batch.most, *(each.count for each in taken)])
        return merged(Acquired(each.first, each.last, each.count) for each in taken)

    def _take(self, turn: _Acquisition, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            lock = self._lock(turn.until, deliveries[0].first, deliveries[-1].last)
            for each in deliveries:
                each.acquire(turn.member_id, lock)

    @staticmethod
    def _is_throttled(batch: Batch, first: int, last: int, limits: Limits) -> bool:
        """Return whether an available record of the batch has a delivery count that throttles deliveries."""
        if batch.most < limits.throttled_from:
            return False
        deliveries = batch.between(first, last) if batch.is_split else batch.deliveries
        return any(each.is_available and each.count >= limits.throttled_from for each in deliveries)

    def _insert(self, batch: Batch) -> None:
        insort(self._batches, batch, key=_first)

    def _lock(self, deadline: int, first: int, last: int) -> RecordLock:
        lock = RecordLock(deadline, first, last)
        heapq.heappush(self._locks, (deadline, next(self._lock_numbers), lock))
        return lock

    def _archive_stale(self, offset: int, base: int) -> None:
        """Archive available records before the first batch of the log that was read: the log has them no more."""
        if self._batches and offset < base:
            stale = self._between(self._first_touched(offset), base - 1)
            self._archive(offset, base - 1, RecordState.AVAILABLE, stale)

    def _archive(
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
        if self._batches:
            done = sum(self._done_between(batch, log_start) for batch in self._between(0, log_start - 1))
            touched = self._between(0, log_start - 1)
            self._archive(self.start, log_start - 1, RecordState.AVAILABLE, touched, counts=False)
            self.complete_count -= done
        else:
            self.complete_count = 0
        self.start = log_start
        self.end = max(self.end, log_start)

    def _done_between(self, batch: Batch, end: int) -> int:
        """Return the number of records of a batch, from the start offset to before `end`, that are in a final state."""
        deliveries = batch.between(self.start, end - 1) if batch.is_split else batch.deliveries
        return sum(self._counted(each, end) for each in deliveries if each.state.is_final)

    def _counted(self, records: Delivery | StateBatch, end: int | None = None) -> int:
        """Return the number of offsets from the start offset on, and before `end`."""
        last = records.last if end is None else min(records.last, end - 1)
        return max(0, last - max(self.start, records.first) + 1)

    # -- acknowledgement -----------------------------------------------------------------------------------------

    def acknowledge(
        self, now: int, member_id: str, acknowledgements: Iterable[Acknowledgement], limits: Limits
    ) -> StateWrite | None:
        """Carry out a member's acknowledgements: all, or none but renewals. Return the write, None if there is none.

        Raises RefusedError with INVALID_RECORD_STATE or INVALID_REQUEST, or UnknownStartError. Kafka: `acknowledge`.
        """
        write = StateWrite(0, 0, [])
        try:
            for each in acknowledgements:
                if each.last >= self.start:
                    for batch in self._acknowledged(each):
                        self._acknowledge(now, member_id, each, batch, limits, write)
        except RefusedError:
            self._take_back(write)
            raise
        return self._ready(write)

    def _acknowledged(self, acknowledgement: Acknowledgement) -> list[Batch]:
        """Return the batches that an acknowledgement is about."""
        floor = self._floor(acknowledgement.first)
        if floor < 0 and acknowledgement.first < self.start:
            floor = self._floor(self.start)
            if floor < 0:
                raise UnknownStartError
        if floor < 0:
            raise RefusedError(NOT_IN_FLIGHT)
        batches = self._batches[floor : self._floor(acknowledgement.last) + 1]
        if batches[-1].last < acknowledgement.first:
            raise RefusedError(FIRST_BEYOND)
        if batches[-1].last < acknowledgement.last:
            raise RefusedError(LAST_BEYOND)
        return batches

    def _acknowledge(
        self,
        now: int,
        member_id: str,
        acknowledgement: Acknowledgement,
        batch: Batch,
        limits: Limits,
        write: StateWrite,
    ) -> None:
        if batch.last < self.start:
            return
        if not batch.is_split:
            holder = batch.deliveries[0].member_id
            if holder == NOBODY:
                raise RefusedError(BATCH_NOT_ACQUIRED)
            if holder != member_id:
                raise RefusedError(OTHER_BATCH_OWNER)
            is_whole = batch.lies_within(acknowledgement.first, acknowledgement.last)
            if not is_whole or len(acknowledgement.types) > 1 or batch.contains(self.start):
                batch.split()
        deliveries: Iterable[Delivery] = batch.deliveries
        if batch.is_split:
            deliveries = batch.between(max(acknowledgement.first, self.start), acknowledgement.last)
        lock: RecordLock | None = None
        for each in deliveries:
            if each.state is not RecordState.ACQUIRED:
                raise RefusedError(OFFSET_NOT_ACQUIRED)
            if each.member_id != member_id:
                raise RefusedError(OTHER_OFFSET_OWNER)
            kind = acknowledgement.type_of(max(each.first, acknowledgement.first))
            if kind != RENEW:
                self._begin(write, each, STATES[kind], limits)
                continue
            if not limits.renews:
                raise RefusedError(NO_RENEWALS)
            lock = lock or self._lock(now + limits.lock_ms, batch.first, batch.last)
            each.locked_by(lock)

    def _begin(self, write: StateWrite, delivery: Delivery, state: RecordState, limits: Limits) -> None:
        delivery.begin(state, limits.deliveries)
        write.changes.append(delivery)
        write.batches.append(delivery.stored)
        if delivery.state.is_final:
            self.complete_count += self._counted(delivery)

    def release(self, member_id: str, limits: Limits) -> StateWrite | None:
        """Release all records that a member holds. Return the write, None if there is none.

        Kafka: `releaseAcquiredRecords`.
        """
        write = StateWrite(0, 0, [])
        for batch in self._batches:
            held = batch.deliveries[0]
            if not batch.is_split and self._is_held(held, member_id) and batch.contains(self.start):
                batch.split()
            for each in batch.deliveries:
                if self._is_held(each, member_id):
                    write.holders.append(each.member_id)
                    self._begin(write, each, self._released(each), limits)
        return self._ready(write)

    @staticmethod
    def _is_held(delivery: Delivery, member_id: str) -> bool:
        return delivery.state is RecordState.ACQUIRED and delivery.member_id in {member_id, NOBODY}

    def _released(self, delivery: Delivery) -> RecordState:
        """Return the state of records that lose their holder."""
        return RecordState.ARCHIVED if delivery.last < self.start else RecordState.AVAILABLE

    def expire(self, now: int, limits: Limits) -> StateWrite | None:
        """Release the records whose locks have expired, at once. Return the write, None if there is none."""
        write = StateWrite(0, 0, [])
        while (due := self.lock_deadline) is not None and due <= now:
            lock = heapq.heappop(self._locks)[2]
            lock.is_expired = True
            for batch in self._between(self._first_touched(lock.first), lock.last):
                self._expire(batch, lock, limits, write)
        return self._ready(write)

    def _expire(self, batch: Batch, lock: RecordLock, limits: Limits, write: StateWrite) -> None:
        if not batch.is_split and batch.deliveries[0].lock is lock and batch.contains(self.start):
            batch.split()
        for each in batch.between(lock.first, lock.last) if batch.is_split else batch.deliveries:
            if each.lock is lock and each.change is None:
                self._end_lock(each, limits, write)

    def _end_lock(self, delivery: Delivery, limits: Limits, write: StateWrite) -> None:
        write.holders.append(delivery.member_id)
        delivery.release(self._released(delivery), limits.deliveries)
        delivery.unlock()
        write.batches.append(delivery.stored)
        if delivery.state.is_final:
            self.complete_count += self._counted(delivery)
        else:
            self._is_available_from(delivery.first)

    def end_locks(self, first: int, last: int, member_id: str | None, limits: Limits) -> StateWrite | None:
        """Release records between two offsets, of one member or of all, as if their locks had expired.

        A test asks for this. Returns the write, None if there is none.
        """
        write = StateWrite(0, 0, [])
        for batch in self._between(self._first_touched(first), last):
            is_cut = not batch.lies_within(first, last) or batch.contains(self.start)
            if not batch.is_split and batch.deliveries[0].state is RecordState.ACQUIRED and is_cut:
                batch.split()
            for each in batch.between(first, last) if batch.is_split else batch.deliveries:
                is_held = each.state is RecordState.ACQUIRED and member_id in {None, each.member_id}
                if is_held and each.change is None:
                    self._end_lock(each, limits, write)
        return self._ready(write)

    # -- writes --------------------------------------------------------------------------------------------------

    def _ready(self, write: StateWrite) -> StateWrite | None:
        if not write.batches:
            return None
        write.start, write.complete_count = self.start, self.complete_count
        return write

    def complete(self, write: StateWrite, *, is_written: bool) -> bool:
        """Bring the changes of a write into effect, or take them back. Return whether the start offset was moved."""
        if not is_written:
            self._take_back(write)
            return self._advance()
        for each in write.changes:
            each.complete(is_written=True)
            if each.state is RecordState.AVAILABLE:
                self._is_available_from(each.first)
        return self._advance()

    def _take_back(self, write: StateWrite) -> None:
        for each, stored in zip(write.changes, write.batches, strict=False):
            each.complete(is_written=False)
            if each.state is RecordState.AVAILABLE:
                self._is_available_from(each.first)
            if RecordState(stored.state).is_final and not each.state.is_final:
                self.complete_count -= self._counted(stored)

    def _advance(self) -> bool:
        """Move the start offset beyond finished records; return whether there were any.

        Kafka: `maybeUpdateCachedStateAndOffsets`.
        """
        floor = self._floor(self.start)
        if floor < 0 or not self._batches[floor].at(self.start).is_done:
            return False
        last, completed, kept = self._finished()
        if last < 0:
            return False
        if last == self._batches[-1].last:
            self.start = self.end = max(self.start, last + 1)
            self._batches.clear()
            self.complete_count = 0
            return True
        start = last + 1 if last < self._batches[kept].last else self._batches[kept + 1].first
        if last == self._batches[kept].last:
            kept += 1
            if (gap := self._gap_start()) is not None:
                start = min(gap, start)
        self.start = max(self.start, start)
        self.complete_count -= completed
        del self._batches[:kept]
        return True

    def _finished(self) -> tuple[int, int, int]:
        """Return the last offset before which all is finished, how many that completes, and the index of its batch."""
        gap, last, completed, at = self._gap_start(), -1, 0, 0
        for index, batch in enumerate(self._batches):
            if gap is not None and batch.last >= gap:
                break
            end = batch.done_before()
            if end > batch.first:
                last, at = end - 1, index
                completed += max(0, end - max(self.start, batch.first))
            if end <= batch.last:
                break
        return last, completed, at


@value
class _Acquisition:
    """A fetch that acquires records, until a time in ms."""

    until: int
    member_id: str
    read: Read
    limits: Limits


def _size(rows: Iterable[Acquired]) -> int:
    return sum(row.size for row in rows)


def _cut(read: Read, first: int, last: int) -> Iterable[tuple[int, int]]:
    """Yield the batches in which new records are acquired: whole batches of the log, as many as fill `batch_size`.

    In exact mode all are one batch.
    """
    size = max(1, read.batch_size)
    if not read.is_exact and last - first + 1 > size:
        for index in range(read.after(first), read.after(last)):
            base = read.batches[index][0]
            if base - first >= size:
                yield first, base - 1
                first = base
    yield first, last
