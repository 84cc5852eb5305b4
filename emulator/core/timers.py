"""Timers are data: a key with a deadline, no callback.

Setting a key again replaces its deadline. Whoever owns a `Timers` pops what is due and matches on the key, so
pending timers can be asserted, traced and shown. At equal deadlines the timer set first fires first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class SessionExpiry:
    """A member has been silent for its session timeout; or, if new, has waited 5 minutes in its first JoinGroup."""

    member_id: str


@dataclass(frozen=True, slots=True)
class PendingMemberExpiry:
    """A member id handed out with MEMBER_ID_REQUIRED was not used within the session timeout (KIP-394)."""

    member_id: str


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """The first rebalance of an empty group waits for more members (KIP-134)."""

    delay_ms: int
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class RebalanceTimeout:
    """The join phase has lasted the group's rebalance timeout (KIP-62)."""


@dataclass(frozen=True, slots=True)
class PendingSyncExpiry:
    """Members of this generation did not send SyncGroup within the rebalance timeout (KAFKA-12890)."""

    generation: int


@dataclass(frozen=True, slots=True)
class OffsetExpiryCheck:
    """`offsets.retention.check.interval.ms` has passed: look for offsets to expire and an empty group to remove."""


@dataclass(frozen=True, slots=True)
class FetchTimeout:
    """A Fetch has waited its `max_wait_ms`."""

    connection: int
    correlation_id: int


TimerKey = (
    SessionExpiry
    | PendingMemberExpiry
    | InitialDelay
    | RebalanceTimeout
    | PendingSyncExpiry
    | OffsetExpiryCheck
    | FetchTimeout
)

K = TypeVar("K")

LOOK = -1
"""Stands for the next deadline while that has to be looked for; times are not negative."""

GONE = -1
"""Stands for the entry of a heap that there is not."""

STALE_MIN = 64
"""So many entries of a heap that stand for nothing are not worth any work."""


@dataclass(slots=True, eq=False)
class _Due(Generic[K]):
    """When a key is due, when that was set, and which entry of the heap stands for it (`GONE`: none any more)."""

    key: K
    deadline: int
    order: int
    entry: int


class Timers(Generic[K]):
    """Keys with deadlines in integer milliseconds.

    A heartbeat only moves its deadline; the heap keeps the older entry and is corrected when that comes up. So
    re-arming costs O(1), however many members a group has. Entries of keys that were cancelled, or set to fire earlier,
    stay in the heap, too; it is made anew before they are the greater part of it.
    """

    def __init__(self) -> None:
        self._due: dict[K, _Due[K]] = {}
        # entries point to what they stand for: to look a key up is dear, since keys are hashed in Python
        self._heap: list[tuple[int, int, _Due[K]]] = []
        self._order = 0
        # the answer of `deadline`, which is asked for several times per request
        self._next: int | None = None

    def set(self, key: K, deadline: int) -> None:
        """Fire `key` at `deadline`, instead of whenever it would have fired before."""
        self._order = order = self._order + 1
        due = self._due.get(key)
        if due is not None and due.deadline <= deadline:
            if due.deadline == self._next:
                self._next = LOOK
            due.deadline, due.order = deadline, order
            return
        if due is None:
            due = self._due[key] = _Due(key, deadline, order, order)
        else:
            due.deadline, due.order, due.entry = deadline, order, order
        if self._next is None or deadline < self._next:
            # it may be LOOK, which is less than any
            self._next = deadline
        heap = self._heap
        heapq.heappush(heap, (deadline, order, due))
        if len(heap) > STALE_MIN + 2 * len(self._due):
            self._make_anew()

    def cancel(self, key: K) -> None:
        """Forget `key`; nothing happens if it is not set."""
        due = self._due.pop(key, None)
        if due is not None:
            due.entry = GONE
            if due.deadline == self._next:
                self._next = LOOK

    def deadline(self) -> int | None:
        """When the next key is due, or None."""
        if self._next == LOOK:
            self._next = self._find_next()
        return self._next

    def _find_next(self) -> int | None:
        heap = self._heap
        while heap:
            at, entry, due = heap[0]
            if due.entry != entry:
                heapq.heappop(heap)
            elif due.order == entry:
                return at
            else:
                due.entry = due.order
                heapq.heapreplace(heap, (due.deadline, due.order, due))
        return None

    def _make_anew(self) -> None:
        for due in self._due.values():
            due.entry = due.order
        self._heap = [(due.deadline, due.order, due) for due in self._due.values()]
        heapq.heapify(self._heap)

    def pop_due(self, now: int) -> tuple[int, K] | None:
        """Take the earliest key whose deadline is not after `now`, with that deadline."""
        at = self._next
        if at == LOOK:
            # `deadline()`, without the call: this is asked before every input
            at = self._next = self._find_next()
        if at is None or at > now:
            return None
        key = heapq.heappop(self._heap)[2].key
        del self._due[key]
        self._next = LOOK
        return at, key

    def pending(self) -> Iterator[tuple[int, K]]:
        """Every key with its deadline, the earliest first."""
        in_order = sorted((due.deadline, due.order, due) for due in self._due.values())
        return ((at, due.key) for at, _, due in in_order)

    def copy_shifted(self, ms: int, kind: type[Timers[K]]) -> Timers[K]:
        """The same keys in the same order as timers of a kind, each due so much later."""
        timers = kind()
        for at, key in self.pending():
            timers.set(key, at + ms)
        return timers

    def __iter__(self) -> Iterator[K]:
        """Every key, in no order."""
        return iter(self._due)

    def get(self, key: K) -> int | None:
        """When `key` is due, or None."""
        due = self._due.get(key)
        return None if due is None else due.deadline

    def __getitem__(self, key: K) -> int:
        return self._due[key].deadline

    def __contains__(self, key: K) -> bool:
        return key in self._due

    def __len__(self) -> int:
        return len(self._due)


class StoppedTimers(Timers[K]):
    """Timers of which none is due, however late it is: those of a group that is frozen."""

    def deadline(self) -> int | None:
        """Nothing is due next."""
        return None

    def pop_due(self, now: int) -> tuple[int, K] | None:
        """Nothing is due."""
        del now
        return None
