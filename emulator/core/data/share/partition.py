"""A share partition: the part of a log that a share group reads, and the holder of each record of it (KIP-932).

It reads no clock and sends nothing. A change that the share coordinator has to store is returned as a `StateWrite`;
`complete` brings it into effect, or takes it back. Rules: `SharePartition`.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.values import mutable, value

from ...refusal import Refusal, RefusedError
from .acquisition import Acquisition
from .batches import NOBODY, RecordState, StateBatch
from .in_flight import InFlightBatches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .acquisition import Limits, Read
    from .batches import Acquired, Batch, Delivery
    from .locks import RecordLock

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""The types of acknowledgements."""

STATES = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}
"""The state that an acknowledgement gives to a record; for REJECT of a group without dead letters."""

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


class UnknownStartError(Exception):
    """An acknowledgement begins before the start offset and ends after it, and nothing is in flight there.

    Kafka fails without the batch, and answers the whole request with UNKNOWN_SERVER_ERROR.
    """


@value
class Acknowledgement:
    """The acknowledgement of the offsets from `first` to `last`: one type for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def type_of(self, offset: int) -> int:
        """Return the type for an offset."""
        return self.types[offset - self.first] if len(self.types) > 1 else self.types[0]


class DeathCause(Enum):
    """Why a record is given up, in the words of `ShareGroupDLQManager`."""

    REJECTED = "Offset rejected by client."
    DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."


@value
class DeadRecords:
    """Offsets from `first` to `last`, delivered `count` times, that become dead letters (KIP-1191)."""

    first: int
    last: int
    count: int
    cause: DeathCause


@mutable
class StateWrite:
    """A write to the share coordinator: start offset, number of completed records from there on, changed states.

    The start offset is that before the change. `changes` are completed with the write. `holders` are the members whose
    locks have ended without an acknowledgement, one for each batch. `given_up` are records that were released after
    their last delivery. `dead` are records that become dead letters afterwards.
    """

    start: int
    complete_count: int
    batches: list[StateBatch]
    changes: list[Delivery] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)
    given_up: list[StateBatch] = field(default_factory=list)
    dead: list[DeadRecords] = field(default_factory=list)


class SharePartition(InFlightBatches):
    """A share partition with the state that was loaded, and the epoch of that state."""

    def __init__(self, start: int, state_epoch: int = 0, stored: Iterable[StateBatch] = ()) -> None:
        super().__init__(start, stored)
        self.state_epoch = state_epoch
        self.found_offset = -1
        """The offset that a fetch has found last in the log."""

    def can_acquire(self, limits: Limits) -> bool:
        """Return whether a fetch would acquire records if there are new ones."""
        return self.next_fetch_offset != self.end + 1 or self.in_flight < limits.in_flight

    def acquire(self, now: int, member_id: str, read: Read, limits: Limits) -> list[Acquired]:
        """Acquire records for a member, from what was read; their locks begin."""
        return Acquisition(self, now, member_id, read, limits).acquire()

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
        floor = self.floor(acknowledgement.first)
        if floor < 0 and acknowledgement.first < self.start:
            floor = self.floor(self.start)
            if floor < 0:
                raise UnknownStartError
        if floor < 0:
            raise RefusedError(NOT_IN_FLIGHT)
        batches = self.batches[floor : self.floor(acknowledgement.last) + 1]
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
                self._begin(write, each, limits.given_up if kind == REJECT else STATES[kind], limits)
                continue
            if not limits.renews:
                raise RefusedError(NO_RENEWALS)
            lock = lock or self.locks.begin(now + limits.lock_ms, batch.first, batch.last)
            each.locked_by(lock)

    def _begin(self, write: StateWrite, delivery: Delivery, state: RecordState, limits: Limits) -> None:
        delivery.begin(state, limits)
        write.changes.append(delivery)
        if state is RecordState.AVAILABLE and delivery.state is not state:
            write.given_up.append(delivery.stored)
        if delivery.state is RecordState.ARCHIVING:
            is_rejected = state is RecordState.ARCHIVING
            _give_up(write, delivery, DeathCause.REJECTED if is_rejected else DeathCause.DELIVERED_TOO_OFTEN)
        write.batches.append(delivery.stored)
        if delivery.state.is_final:
            self.complete_count += self.counted(delivery)

    def release(self, member_id: str, limits: Limits) -> StateWrite | None:
        """Release all records that a member holds. Return the write, None if there is none.

        Kafka: `releaseAcquiredRecords`.
        """
        write = StateWrite(0, 0, [])
        for batch in self.batches:
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
        for lock in self.locks.expire(now):
            for batch in self.touching(lock.first, lock.last):
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
        delivery.release(self._released(delivery), limits)
        delivery.unlock()
        write.batches.append(delivery.stored)
        if delivery.state.is_final:
            self.complete_count += self.counted(delivery)
        elif delivery.state is RecordState.ARCHIVING:
            _give_up(write, delivery, DeathCause.DELIVERED_TOO_OFTEN)
        else:
            self.note_available(delivery.first)

    def end_locks(self, first: int, last: int, member_id: str | None, limits: Limits) -> StateWrite | None:
        """Release records between two offsets, of one member or of all, as if their locks had expired.

        A test asks for this. Returns the write, None if there is none.
        """
        write = StateWrite(0, 0, [])
        for batch in self.touching(first, last):
            is_cut = not batch.lies_within(first, last) or batch.contains(self.start)
            if not batch.is_split and batch.deliveries[0].state is RecordState.ACQUIRED and is_cut:
                batch.split()
            for each in batch.between(first, last) if batch.is_split else batch.deliveries:
                is_held = each.state is RecordState.ACQUIRED and member_id in {None, each.member_id}
                if is_held and each.change is None:
                    self._end_lock(each, limits, write)
        return self._ready(write)

    # -- dead letters --------------------------------------------------------------------------------------------

    def loaded_dead(self, limits: Limits) -> list[DeadRecords]:
        """Return the loaded records whose dead letters may not be written yet. Kafka: `maybeResumeDlqArchiving`."""
        return [
            DeadRecords(
                each.first,
                each.last,
                each.count,
                DeathCause.DELIVERED_TOO_OFTEN if each.count >= limits.deliveries else DeathCause.REJECTED,
            )
            for batch in self.batches
            for each in batch.deliveries
            if each.state is RecordState.ARCHIVING
        ]

    def bury(self, dead: DeadRecords) -> StateWrite:
        """Archive records whose dead letters are written, or cannot be; return the write.

        Kafka: `initiateDLQAndArchive`.
        """
        archived = StateBatch(dead.first, dead.last, RecordState.ARCHIVED, dead.count)
        touched = self.touching(dead.first, dead.last)
        self.archive(dead.first, dead.last, RecordState.ARCHIVING, touched, counts=False)
        self.complete_count += self.counted(archived)
        return StateWrite(self.start, self.complete_count, [archived])

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
            return self.advance()
        for each in write.changes:
            each.complete(is_written=True)
            if each.state is RecordState.AVAILABLE:
                self.note_available(each.first)
        return self.advance()

    def _take_back(self, write: StateWrite) -> None:
        for each, stored in zip(write.changes, write.batches, strict=False):
            each.complete(is_written=False)
            if each.state is RecordState.AVAILABLE:
                self.note_available(each.first)
            was_counted = RecordState(stored.state).is_final
            if was_counted and not each.state.is_final:
                self.complete_count -= self.counted(stored)
            elif each.state.is_final and not was_counted:
                # Kafka 4.4 forgets to count them
                self.complete_count += self.counted(stored)


def _give_up(write: StateWrite, delivery: Delivery, cause: DeathCause) -> None:
    write.dead.append(DeadRecords(delivery.first, delivery.last, delivery.count, cause))
