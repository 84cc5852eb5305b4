"""Workers that own partitions: the members of a consumer group poll one record at a time, in order.

The owners are those of a run's record. A member takes turns with its partitions, commits in the poll after each commit
interval (`enable.auto.commit`), and before it gives up a partition. The next owner begins at the committed offset.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..record import FactKind
from .backlog import RecordDelivery, WorkRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..record import Fact, RunRecord
    from .backlog import Backlog, Job

NEVER = 1 << 62


@dataclass(slots=True)
class _Owner:
    """A running member: its partitions in the order of their turns, and the record at hand."""

    name: str
    partitions: deque[int] = field(default_factory=deque)
    job: Job | None = None
    free_ms: int = NEVER
    committed_ms: int = 0
    is_paused: bool = False


class PartitionWorkers:
    """The owners of partitions at work on a backlog. `record_ms` is the time of a member for a record."""

    def __init__(self, backlog: Backlog, commit_interval_ms: int, record_ms: Callable[[str], int]) -> None:
        self._backlog = backlog
        self._commit_interval_ms = commit_interval_ms
        self._record_ms = record_ms
        self._owners: dict[str, _Owner] = {}
        self._next: Counter[int] = Counter()
        self._committed: Counter[int] = Counter()
        self._begin_ms = 0
        self._work = WorkRecord()

    def work(self, record: RunRecord) -> WorkRecord:
        """Return the work of the owners of a run from its beginning on, until the backlog is done.

        No process of the run resumes after a pause.
        """
        self._begin_ms = record.begin_ms
        for fact in record.facts[: record.first]:
            self._apply(fact)
        for owner in self._owners.values():
            owner.committed_ms = record.begin_ms
            self._take_next(owner, record.begin_ms)
        for fact in record.facts[record.first :]:
            self._advance(fact.at_ms)
            self._apply(fact)
            for owner in self._owners.values():
                self._take_next(owner, fact.at_ms)
        self._advance(NEVER - 1)
        return self._work

    def _advance(self, until_ms: int) -> None:
        while busy := [each for each in self._owners.values() if each.free_ms <= until_ms]:
            owner = min(busy, key=lambda each: each.free_ms)
            now = owner.free_ms
            self._finish(owner, now)
            if now - owner.committed_ms >= self._commit_interval_ms:
                owner.committed_ms = now
                self._commit(owner.partitions)
            self._take_next(owner, now)

    def _take_next(self, owner: _Owner, now: int) -> None:
        """Let a member without a record begin one, if a partition of its own has more."""
        if owner.job is not None or owner.is_paused:
            return
        for _ in range(len(owner.partitions)):
            partition = owner.partitions[0]
            owner.partitions.rotate(-1)
            if self._next[partition] < self._backlog.records:
                owner.job = (partition, self._next[partition])
                owner.free_ms = now + self._record_ms(owner.name)
                self._work.started.append(RecordDelivery(now - self._begin_ms, owner.name, owner.job))
                return

    def _finish(self, owner: _Owner, now: int) -> None:
        if owner.job is not None:
            self._work.done_ms[owner.job] = now - self._begin_ms
            self._next[owner.job[0]] = owner.job[1] + 1
            owner.job, owner.free_ms = None, NEVER

    def _commit(self, partitions: Counter[int] | deque[int] | frozenset[int]) -> None:
        for each in partitions:
            self._committed[each] = self._next[each]

    def _apply(self, fact: Fact) -> None:
        if fact.kind is FactKind.UP:
            self._owners[fact.member] = _Owner(fact.member)
        owner = self._owners.get(fact.member)
        if owner is None:
            return
        match fact.kind:
            case FactKind.HOLDS:
                self._hold(owner, fact)
            case FactKind.DOWN:
                self._hold(owner, fact)
                self._work.lost = fact.member, fact.at_ms - self._begin_ms
                del self._owners[fact.member]
            case FactKind.PAUSED:
                self._work.lost = fact.member, fact.at_ms - self._begin_ms
                owner.is_paused, owner.job, owner.free_ms = True, None, NEVER
            case _:
                pass

    def _hold(self, owner: _Owner, fact: Fact) -> None:
        before = frozenset(owner.partitions)
        lost, gained = before - fact.partitions, fact.partitions - before
        if owner.job is not None and owner.job[0] in lost:
            if fact.is_clean:
                self._finish(owner, fact.at_ms)
            owner.job, owner.free_ms = None, NEVER
        if fact.is_clean:
            self._commit(lost)
        for each in sorted(gained):
            self._next[each] = self._committed[each]
        owner.partitions = deque([*(each for each in owner.partitions if each not in lost), *sorted(gained)])
