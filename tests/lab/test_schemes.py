"""Every scheme in every situation: partitions end with one owner each, and equal cells give equal records."""

from __future__ import annotations

from dataclasses import asdict
from random import Random

import laboratory
import pytest

from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.rebalances import rebalances
from koordinator.lab.cells import AFTER_S, SETTLE_S, Cell, play, record_of
from koordinator.lab.load import GROUP, Load
from koordinator.lab.record import RunRecord
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.schemes.clockwork import Clockwork, Process, Steps
from koordinator.lab.schemes.ensemble import Ensemble, NodeExistsError, NoNodeError
from koordinator.lab.schemes.on_core import CoreScheme, Members
from koordinator.lab.situations import SITUATIONS, name_of

LOAD = Load()

COMMITTED = {(each["situation"], each["scheme"]): each["figures"][0] for each in laboratory.read()["cells"]}

GIVES_UP = {("zookeeper", "runaway"), ("zookeeper", "impatient-joiner")}
"""Cells in which consumers may run out of retries."""


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_partition_ends_with_an_owner_and_the_figures_are_those_of_the_docs(scheme: str, situation: str) -> None:
    figures = play(Cell(scheme, situation, LOAD))
    assert asdict(figures) == COMMITTED[situation, scheme], "docs/lab.json is not current: make docs"
    assert figures.balance_s is not None or (scheme, situation) in GIVES_UP
    assert figures.moved >= figures.moved_least or situation == "growth"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_cells_have_equal_records(scheme: str) -> None:
    cell = Cell(scheme, "long-pause", LOAD)
    assert record_of(cell) == record_of(cell)


@pytest.mark.slow
def test_another_seed_gives_another_run() -> None:
    assert record_of(Cell("eager", "newcomer", LOAD)) != record_of(Cell("eager", "newcomer", Load(seed=2)))


def test_rebalances_of_the_core_are_those_that_its_trace_shows() -> None:
    with CoreScheme(LOAD, Members(("cooperative-sticky",))) as scheme:
        for number in range(LOAD.members):
            scheme.start(name_of(number))
        scheme.pass_time(SETTLE_S)
        SITUATIONS["bounce"].play(scheme)
        scheme.pass_time(AFTER_S)
        found = rebalances(GroupTrace(scheme.group.events(), GROUP))
        assert scheme.record.rebalances[""] == sum(each.outcome == "completed" for each in found) > 0


def test_a_worker_keeps_the_tasks_of_a_bounced_one_free_for_the_delay() -> None:
    figures = play(Cell("connect", "bounce", LOAD))
    assert figures.moved == 0
    assert figures.idle_s == pytest.approx(4 * LOAD.max_delay_s, abs=12)


# -- ZooKeeper -----------------------------------------------------------------------------------------------


class Tree:
    """An ensemble with one session at its last server."""

    def __init__(self, lag_ms: tuple[int, int] = (5, 5)) -> None:
        self.clockwork, self.record = Clockwork(), RunRecord()
        self.ensemble = Ensemble(self.clockwork, Random(1), self.record, lag_ms=lag_ms)
        self.expired = 0
        self.session = self.ensemble.connect(6_000, self._expire)

    def _expire(self) -> None:
        self.expired += 1

    def pass_ms(self, ms: int) -> None:
        self.clockwork.run(self.clockwork.now_ms + ms)

    def children(self, path: str) -> list[str]:
        return self.ensemble.children(self.session, path)


def test_a_server_shows_a_write_after_its_lag() -> None:
    tree = Tree()
    tree.ensemble.create("/a/b")
    tree.pass_ms(4)
    assert tree.children("/a") == []
    tree.pass_ms(1)
    assert tree.children("/a") == ["b"]


def test_clients_of_different_servers_see_different_states() -> None:
    tree = Tree(lag_ms=(1, 1_000))
    tree.ensemble.create("/a/b")
    seen = set()
    for _ in range(100):
        tree.pass_ms(10)
        seen.add(tuple(len(server.children.get("/a", ())) for server in tree.ensemble.servers))
    assert any(len(set(views)) > 1 for views in seen)


def test_a_watch_fires_once() -> None:
    tree = Tree()
    fired: list[int] = []
    tree.ensemble.children(tree.session, "/a", lambda: fired.append(tree.clockwork.now_ms))
    tree.ensemble.create("/a/b")
    tree.ensemble.create("/a/c")
    tree.pass_ms(100)
    assert fired == [6]


def test_ephemeral_nodes_go_with_their_session() -> None:
    tree = Tree()
    tree.ensemble.create("/a/b", tree.session)
    tree.pass_ms(5_999)
    assert tree.children("/a") == ["b"]
    tree.pass_ms(10)
    assert tree.children("/a") == []
    assert tree.expired == 1
    assert not tree.ensemble.ping(tree.session)


def test_a_ping_keeps_a_session() -> None:
    tree = Tree()
    tree.pass_ms(3_000)
    assert tree.ensemble.ping(tree.session)
    tree.pass_ms(5_999)
    assert not tree.expired


def test_a_node_has_one_creator() -> None:
    tree = Tree()
    tree.ensemble.create("/a/b")
    with pytest.raises(NodeExistsError):
        tree.ensemble.create("/a/b", tree.session)


def test_a_node_that_is_gone_cannot_be_read() -> None:
    tree = Tree()
    with pytest.raises(NoNodeError):
        tree.ensemble.read(tree.session, "/a", ["b"])


# -- tasks ---------------------------------------------------------------------------------------------------


def test_a_paused_process_does_everything_overdue_when_it_resumes() -> None:
    clockwork = Clockwork()
    process, done = Process(clockwork), []

    def steps() -> Steps[None]:
        yield 10
        done.append(clockwork.now_ms)

    process.run(steps())
    process.is_paused = True
    clockwork.run(50)
    assert done == []
    process.resume()
    assert done == [50]


def test_a_process_that_ended_does_nothing_more() -> None:
    clockwork = Clockwork()
    process, done = Process(clockwork), []
    clockwork.after(10, lambda: process.call(lambda: done.append(1)))
    process.is_alive = False
    clockwork.run(50)
    assert done == []
