"""The figures of a run, computed from its record: one sweep over the facts in the order of time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .record import FactKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .load import Load
    from .record import Fact, RunRecord

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run; `matrix.COLUMNS` describes each. Durations are seconds of virtual time."""

    rebalances: int
    notifications: int
    requests: int
    message_bytes: int
    balance_s: float | None
    stopped_s: float
    idle_s: float
    doubled_s: float
    moved: int
    moved_least: int
    reprocessed: int
    restored_bytes: int
    restore_s: float
    peak_members: int
    peak_bytes: int


def figures_of(record: RunRecord, load: Load, end_ms: int) -> Figures:
    """Return the figures from `record.begin_ms` to `end_ms`."""
    sweep = _Sweep(load, record.begin_ms)
    for number, fact in enumerate(record.facts):
        if number == record.first:
            sweep.begin()
        sweep.advance(fact.at_ms)
        sweep.apply(fact)
    sweep.advance(end_ms)
    sweep.finish(end_ms)
    moved, most = sweep.gained.total(), max(sweep.gained.values(), default=0)
    return Figures(
        rebalances=max(record.rebalances.values(), default=0),
        notifications=record.notifications,
        requests=record.requests.total(),
        message_bytes=record.message_bytes,
        balance_s=None if sweep.idle else (sweep.changed_ms - record.begin_ms) / 1000,
        stopped_s=sweep.stopped_ms / 1000,
        idle_s=sweep.idle_ms / 1000,
        doubled_s=sweep.doubled_ms / 1000,
        moved=moved,
        moved_least=sweep.least_moves(),
        reprocessed=round(sweep.repeated_ms * load.records_per_s / 1000),
        restored_bytes=moved * load.state_bytes,
        restore_s=round(most * load.state_bytes / load.restore_bytes_per_s, 3),
        peak_members=record.peak_members,
        peak_bytes=record.peak_bytes,
    )


@dataclass(slots=True)
class _Member:
    """A running process: its partitions with the times since which it has them, and its interruptions."""

    since: dict[int, int]
    has_worked: bool = False
    stopped_at: int | None = None
    fenced_at: int = NEVER
    paused_at: int = NEVER
    resumed_at: int = 0

    @property
    def is_paused(self) -> bool:
        """Whether the process is paused."""
        return self.resumed_at == NEVER


class _Sweep:
    def __init__(self, load: Load, begin_ms: int) -> None:
        self._commit_ms = max(1, round(load.commit_interval_s * 1000))
        self._begin_ms = self._now_ms = begin_ms
        self._members: dict[str, _Member] = {}
        self._owners: dict[int, str] = {}
        self._first_owners: dict[int, str] = {}
        self._has_begun = False
        self._processors: Counter[int] = Counter()
        self._partitions = load.partitions
        self._doubled = 0
        self.idle = load.partitions
        self.stopped_ms = self.idle_ms = self.doubled_ms = self.repeated_ms = 0
        self.changed_ms = begin_ms
        self.gained: Counter[str] = Counter()
        """Partitions that each member took over from another."""

    def advance(self, at_ms: int) -> None:
        """Let time pass with the current owners."""
        if at_ms > self._now_ms:
            self.idle_ms += self.idle * (at_ms - self._now_ms)
            self.doubled_ms += self._doubled * (at_ms - self._now_ms)
            self._now_ms = at_ms

    def begin(self) -> None:
        """Count from now on."""
        self._has_begun, self._first_owners = True, dict(self._owners)

    def apply(self, fact: Fact) -> None:
        """Apply a fact at the current time."""
        if fact.kind is FactKind.GREW:
            self.idle += len(fact.partitions) - self._partitions
            self._partitions = len(fact.partitions)
        if fact.kind is FactKind.UP:
            self._members[fact.member] = _Member({})
        member = self._members.get(fact.member)
        if member is None:
            return
        match fact.kind:
            case FactKind.HOLDS:
                self._hold(fact, member)
            case FactKind.DOWN:
                self._hold(fact, member)
                del self._members[fact.member]
            case FactKind.PAUSED:
                member.paused_at, member.resumed_at = fact.at_ms, NEVER
                self._process(member.since, -1)
            case FactKind.RESUMED:
                member.resumed_at = fact.at_ms
                self._process(member.since, 1)
            case FactKind.FENCED:
                member.fenced_at = min(member.fenced_at, fact.at_ms)
            case _:
                pass

    def finish(self, end_ms: int) -> None:
        """Count members that never got partitions back, if there were partitions for them."""
        if self.idle:
            for member in self._members.values():
                if member.stopped_at is not None:
                    self.stopped_ms += end_ms - max(member.stopped_at, self._begin_ms)

    def least_moves(self) -> int:
        """Return the fewest changes of owners that lead from the first owners to a balanced end."""
        first = self._first_owners
        counts = sorted((Counter(first.values())[name] for name in self._members), reverse=True)
        quota, extra = divmod(self._partitions, len(counts) or 1)
        kept = sum(min(count, quota + (at < extra)) for at, count in enumerate(counts))
        return len(first) - kept

    def _hold(self, fact: Fact, member: _Member) -> None:
        now = fact.at_ms
        lost, gained = member.since.keys() - fact.partitions, fact.partitions - member.since.keys()
        if lost and not fact.is_clean and self._has_begun:
            self.repeated_ms += sum(self._repeated(member, member.since[each], now) for each in lost)
        had = bool(member.since)
        for each in lost:
            del member.since[each]
        member.since.update(dict.fromkeys(gained, now))
        if not member.is_paused:
            self._process(lost, -1)
            self._process(gained, 1)
        for each in gained:
            self._own(each, fact.member)
        if self._has_begun and (lost or gained):
            self.changed_ms = now
        if fact.partitions:
            if member.stopped_at is not None:
                self.stopped_ms += max(0, now - max(member.stopped_at, self._begin_ms))
            member.has_worked, member.stopped_at = True, None
            member.fenced_at = NEVER
        elif had and fact.kind is FactKind.HOLDS:
            member.stopped_at = now

    def _own(self, partition: int, name: str) -> None:
        before = self._owners.get(partition)
        self._owners[partition] = name
        if self._has_begun and before not in (None, name):
            self.gained[name] += 1

    def _repeated(self, member: _Member, since: int, now: int) -> int:
        """Return for how long a member processed a partition after its last commit that counts."""
        stop = min(now, member.fenced_at)
        if since <= member.paused_at <= stop < member.resumed_at:
            stop = member.paused_at
        uncommitted = max(0, stop - since) % self._commit_ms
        return uncommitted + max(0, now - max(member.fenced_at, member.resumed_at))

    def _process(self, partitions: Iterable[int], change: int) -> None:
        for each in partitions:
            before = self._processors[each]
            self._processors[each] = after = before + change
            self.idle += (after == 0) - (before == 0)
            self._doubled += (after > 1) - (before > 1)
