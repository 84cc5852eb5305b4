"""Timers as data: a key and a deadline, no callback.

Setting a key again replaces its deadline. The owner of a `Timers` pops due keys and matches on them, so that pending
timers can be asserted, traced and shown. At equal deadlines the timer set first fires first.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Generic, TypeVar

from koordinator.wire.values import mutable, value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


@value
class SessionExpiry:
    """A member was silent for its session timeout, or as a new one parked for 5 minutes in its first JoinGroup."""

    member_id: str


@value
class PendingMemberExpiry:
    """A member id handed out with MEMBER_ID_REQUIRED was not used within the session timeout (KIP-394)."""

    member_id: str


@value
class InitialDelay:
    """The first join phase of an empty group waits for more members (KIP-134)."""

    delay_ms: int
    remaining_ms: int


@value
class RebalanceTimeout:
    """The join phase has lasted the group's rebalance timeout (KIP-62)."""


@value
class PendingSyncExpiry:
    """Members of this generation did not send SyncGroup within the rebalance timeout (KAFKA-12890)."""

    generation: int


@value
class RevocationTimeout:
    """A member of a consumer or streams group did not give up what it has to within its rebalance timeout (KIP-848)."""

    member_id: str


@value
class StreamsInitialDelay:
    """The first target of an empty streams group waits for more members (KIP-1071)."""


@value
class ClassicJoinTimeout:
    """A classic member of a consumer group did not rejoin within its rebalance timeout (KIP-848)."""

    member_id: str


@value
class ClassicSyncTimeout:
    """A classic member of a consumer group did not send SyncGroup within its rebalance timeout (KIP-848)."""

    member_id: str


@value
class PatternResolution:
    """The topics that match the regular expressions of a consumer group are looked up, after the request (KIP-848)."""


@value
class OffsetExpiryCheck:
    """The next check for expired offsets and groups (`offsets.retention.check.interval.ms`)."""


@value
class FetchTimeout:
    """A Fetch has waited for its `max_wait_ms`."""

    connection: int
    correlation_id: int


@value
class AbortTimedOut:
    """The next check for timed-out transactions (`transaction.abort.timed.out.transaction.cleanup.interval.ms`)."""


@value
class ExpireTransactionalIds:
    """The next check for idle transactional ids (`transaction.remove.expired.transaction.cleanup.interval.ms`)."""


@value
class RetryMarkers:
    """A partition's leader did not write the marker of a transaction; it is sent again."""

    transactional_id: str


@value
class ProduceRetry:
    """A Produce asks the transaction coordinator again, whose last transaction is being completed (KIP-890)."""

    token: int


@value
class CleanLogs:
    """The next retention check (`log.retention.check.interval.ms`) or run of the cleaner (`log.cleaner.backoff.ms`)."""


@value
class EffectsDue:
    """An input that returns no effects had some; the next `tick` returns them."""


@value
class ShareFetchTimeout:
    """A ShareFetch has waited for its `max_wait_ms` (KIP-932)."""

    connection: int
    correlation_id: int


@value
class RecordLockExpiry:
    """The first lock of a record in a share partition ends (KIP-932)."""

    group_id: str
    topic_id: UUID
    partition: int


@value
class ShareStateRetry:
    """A request to the share coordinator is sent again (KIP-932)."""

    token: int


@value
class DeadLetterRetry:
    """A request to write dead letters of a share group is sent again (KIP-1191)."""

    token: int


ShareTimerKey = ShareFetchTimeout | RecordLockExpiry | ShareStateRetry | DeadLetterRetry

DataTimerKey = FetchTimeout | ProduceRetry | CleanLogs | EffectsDue | ShareTimerKey

TransactionTimerKey = AbortTimedOut | ExpireTransactionalIds | RetryMarkers

TimerKey = (
    SessionExpiry
    | PendingMemberExpiry
    | InitialDelay
    | RebalanceTimeout
    | PendingSyncExpiry
    | RevocationTimeout
    | StreamsInitialDelay
    | ClassicJoinTimeout
    | ClassicSyncTimeout
    | PatternResolution
    | OffsetExpiryCheck
    | FetchTimeout
)


@value
class TimerFired:
    """A timer that fired, for the trace. `due` is in the group's own time; node timers have no group."""

    key: TimerKey
    group_id: str | None
    due: int


K = TypeVar("K")

NO_ENTRY = -1
"""No heap entry stands for the key."""

STALE_MIN = 64
"""The number of stale heap entries below which the heap is not rebuilt."""


@mutable
class _Timer(Generic[K]):
    """A key's deadline, the order in which it was set, and the heap entry that stands for it (or `NO_ENTRY`)."""

    key: K
    deadline: int
    order: int
    entry: int


class Timers(Generic[K]):
    """Keys with deadlines in integer milliseconds.

    A heartbeat only moves a deadline forward; the heap keeps the old entry, which is corrected when it comes up.
    Re-arming is O(1), whatever the number of members. Entries of keys that were cancelled or set to an earlier deadline
    stay in the heap as well; it is rebuilt before they dominate it.
    """

    def __init__(self) -> None:
        self._timers: dict[K, _Timer[K]] = {}
        # entries refer to their `_Timer` directly: a dict lookup hashes the key in Python, which is slow
        self._heap: list[tuple[int, int, _Timer[K]]] = []
        self._order = 0
        # an attribute, because every request reads several of them
        self.next_deadline: int | None = None
        """The earliest deadline, or None."""

    def set(self, key: K, deadline: int) -> None:
        """Set `key` to fire at `deadline`, replacing its earlier deadline."""
        self._order = order = self._order + 1
        timer = self._timers.get(key)
        if timer is not None and timer.deadline <= deadline:
            before, timer.deadline, timer.order = timer.deadline, deadline, order
            if before == self.next_deadline:
                self.next_deadline = self._find_next()
            return
        if timer is None:
            timer = self._timers[key] = _Timer(key, deadline, order, order)
        else:
            timer.deadline, timer.order, timer.entry = deadline, order, order
        if self.next_deadline is None or deadline < self.next_deadline:
            self.next_deadline = deadline
        heap = self._heap
        heapq.heappush(heap, (deadline, order, timer))
        if len(heap) > STALE_MIN + 2 * len(self._timers):
            self._rebuild_heap()

    def cancel(self, key: K) -> None:
        """Cancel `key`; do nothing if it is not set."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.entry = NO_ENTRY
            if timer.deadline == self.next_deadline:
                self.next_deadline = self._find_next()

    def place(self, key: K) -> tuple[int, int] | None:
        """Return the deadline of `key` and its order among equal ones, or None."""
        timer = self._timers.get(key)
        return None if timer is None else (timer.deadline, timer.order)

    def put_back(self, key: K, place: tuple[int, int] | None) -> None:
        """Set `key` as it was when it had this `place`; cancel it for None."""
        self._timers.pop(key, None)
        if place is not None:
            deadline, order = place
            self._timers[key] = _Timer(key, deadline, order, order)
        self._rebuild_heap()
        self.next_deadline = self._find_next()

    def _find_next(self) -> int | None:
        """Return the earliest deadline, whose entry is the first of the heap then."""
        heap = self._heap
        while heap:
            deadline, entry, timer = heap[0]
            if timer.entry != entry:
                heapq.heappop(heap)
            elif timer.order == entry:
                return deadline
            else:
                timer.entry = timer.order
                heapq.heapreplace(heap, (timer.deadline, timer.order, timer))
        return None

    def _rebuild_heap(self) -> None:
        for timer in self._timers.values():
            timer.entry = timer.order
        self._heap = [(timer.deadline, timer.order, timer) for timer in self._timers.values()]
        heapq.heapify(self._heap)

    def pop_due(self, now: int) -> tuple[int, K] | None:
        """Remove and return the earliest deadline, with its key, if it is not after `now`."""
        deadline = self.next_deadline
        if deadline is None or deadline > now:
            return None
        key = heapq.heappop(self._heap)[2].key
        del self._timers[key]
        self.next_deadline = self._find_next()
        return deadline, key

    def pending(self) -> Iterator[tuple[int, K]]:
        """Return every deadline with its key, earliest first."""
        in_order = sorted((timer.deadline, timer.order, timer) for timer in self._timers.values())
        return ((deadline, timer.key) for deadline, _, timer in in_order)

    def copy_shifted(self, ms: int, kind: type[Timers[K]]) -> Timers[K]:
        """Return timers of another class with the same keys in the same order, each `ms` later."""
        timers = kind()
        for deadline, key in self.pending():
            timers.set(key, deadline + ms)
        return timers

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys in no particular order."""
        return iter(self._timers)

    def get(self, key: K) -> int | None:
        """Return the deadline of `key`, or None."""
        timer = self._timers.get(key)
        return None if timer is None else timer.deadline

    def __getitem__(self, key: K) -> int:
        return self._timers[key].deadline

    def __contains__(self, key: K) -> bool:
        return key in self._timers

    def __len__(self) -> int:
        return len(self._timers)


class StoppedTimers(Timers[K]):
    """Timers that never fire: those of a frozen group."""

    def set(self, key: K, deadline: int) -> None:
        """Set the deadline that `key` has once the timers run."""
        super().set(key, deadline)
        self.next_deadline = None

    def _find_next(self) -> int | None:
        """Return None: nothing is due."""
        return None
