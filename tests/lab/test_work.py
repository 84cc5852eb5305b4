"""Work on a backlog: owners of partitions redo what they did not commit, share groups what they did not acknowledge."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import laboratory
import pytest

from koordinator.lab.load import Load
from koordinator.lab.record import FactKind, RunRecord
from koordinator.lab.situations import name_of
from koordinator.lab.workers.backlog import Backlog, RecordDelivery, WorkRecord, figures_of
from koordinator.lab.workers.comparison import WORK_SCHEMES, WORK_SITUATIONS, play_work
from koordinator.lab.workers.partition_workers import PartitionWorkers
from koordinator.lab.workers.share_workers import ShareWorkers

if TYPE_CHECKING:
    from collections.abc import Iterable

COMMIT_MS = 5_000


class Owners:
    """Two members with a partition each at 0 s, and a backlog of 10 records of 1 s; times are in seconds."""

    def __init__(self) -> None:
        self.record = RunRecord()
        for name, held in (("a", (0,)), ("b", (1,))):
            self.add(-10, FactKind.UP, name)
            self.add(-5, FactKind.HOLDS, name, held)
        self.record.begin(0)

    def add(self, at_s: float, kind: FactKind, name: str, held: Iterable[int] = (), *, is_clean: bool = True) -> None:
        self.record.add(round(at_s * 1000), kind, name, held, is_clean=is_clean)

    def work(self) -> WorkRecord:
        return PartitionWorkers(Backlog(records=10), COMMIT_MS, lambda _: 1_000).work(self.record)


def begun(work: WorkRecord, worker: str, partition: int) -> list[tuple[float, int]]:
    """Return the seconds and offsets of a worker's records of a partition."""
    return [
        (each.at_ms / 1000, each.job[1]) for each in work.started if (each.worker, each.job[0]) == (worker, partition)
    ]


def test_an_owner_takes_the_records_of_a_partition_one_after_the_other() -> None:
    work = Owners().work()
    assert begun(work, "a", 0) == begun(work, "b", 1) == [(offset, offset) for offset in range(10)]
    assert set(work.done_ms.values()) == set(range(1_000, 11_000, 1_000))
    assert work.lost is None


def test_an_owner_takes_turns_with_its_partitions() -> None:
    owners = Owners()
    owners.add(2.5, FactKind.HOLDS, "b")
    owners.add(2.5, FactKind.HOLDS, "a", (0, 1))
    work = owners.work()
    assert begun(work, "a", 0)[:4] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert begun(work, "a", 0)[4:6] == [(5, 4), (7, 5)]
    assert begun(work, "a", 1)[:2] == [(4, 3), (6, 4)]


def test_the_owner_after_a_kill_begins_at_the_last_commit() -> None:
    owners = Owners()
    owners.add(8.5, FactKind.HOLDS, "b", is_clean=False)
    owners.add(8.5, FactKind.DOWN, "b", is_clean=False)
    owners.add(12, FactKind.HOLDS, "a", (0, 1))
    work = owners.work()
    assert begun(work, "b", 1)[-1] == (8, 8)
    assert begun(work, "a", 1) == [(12 + number, 5 + number) for number in range(5)]
    figures = figures_of(work)
    assert work.lost == ("b", 8_500)
    # the offsets 5 to 8, of which the last was at hand
    assert (figures.redelivered, figures.recovered_s, figures.done_s) == (4, 7.5, 17)
    assert figures.records_per_s == round(20 / 17, 3)


def test_an_owner_that_gives_up_a_partition_has_committed_it() -> None:
    owners = Owners()
    owners.add(8.5, FactKind.HOLDS, "b")
    owners.add(8.5, FactKind.DOWN, "b")
    owners.add(12, FactKind.HOLDS, "a", (0, 1))
    work = owners.work()
    assert begun(work, "a", 1) == [(12, 9)]
    assert figures_of(work).redelivered == 0


def test_a_paused_owner_is_lost_with_what_it_did_not_commit() -> None:
    owners = Owners()
    owners.add(7.5, FactKind.PAUSED, "b")
    owners.add(20, FactKind.HOLDS, "a", (0, 1))
    work = owners.work()
    assert begun(work, "b", 1)[-1] == (7, 7)
    assert begun(work, "a", 1)[0] == (20, 5)
    assert work.lost == ("b", 7_500)


def test_nothing_is_recovered_if_nobody_had_work_of_the_lost_worker() -> None:
    work = WorkRecord([RecordDelivery(0, "a", (0, 0))], {(0, 0): 1_000}, lost=("b", 500))
    assert figures_of(work).recovered_s == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [({"records": 0}, "records must be above 0"), ({"slow_record_s": 30.0}, "slow_record_s must be below 30")],
)
def test_a_backlog_that_never_ends_is_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Backlog(**values)  # type: ignore[arg-type]


def test_a_situation_leaves_a_member() -> None:
    with pytest.raises(ValueError, match="members must be at least 2 in the situation 'hang', not 1"):
        play_work("share", "hang", Load(members=1, partitions=1))


# -- a share group on the core -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("action", "again_s"), [("kill", 1.5), ("hang", 30)])
def test_the_record_of_a_lost_worker_is_released_with_its_connection_or_its_lock(action: str, again_s: float) -> None:
    with ShareWorkers(Load(members=2, partitions=1)) as workers:
        workers.write(60)
        workers.run(0.5, lambda *_: 1)
        (had,) = (each.job for each in workers.work.started if each.worker == name_of(0))
        getattr(workers, action)(name_of(0))
        work = workers.run(40, lambda *_: 1)
    again = [each.at_ms / 1000 for each in work.started if each.job == had]
    assert again[0] == 0
    assert again[1:] == [pytest.approx(again_s, abs=1.1)]
    assert figures_of(work).redelivered == 1


@pytest.mark.slow
def test_workers_fetch_from_the_partitions_that_they_are_assigned() -> None:
    with ShareWorkers(Load(members=2, partitions=4)) as workers:
        workers.write(5)
        work = workers.run(11, lambda *_: 1)
    owners = {partition: {each.worker for each in work.started if each.job[0] == partition} for partition in range(4)}
    assert {len(names) for names in owners.values()} == {1}
    assert len(work.done_ms) == 20


@pytest.mark.slow
@pytest.mark.parametrize("situation", WORK_SITUATIONS)
@pytest.mark.parametrize("scheme", WORK_SCHEMES)
def test_the_figures_are_those_of_the_docs(scheme: str, situation: str) -> None:
    committed = laboratory.work_figures()[situation, scheme]
    assert asdict(play_work(scheme, situation)) == asdict(committed), "docs/lab.json is not current: make docs"
