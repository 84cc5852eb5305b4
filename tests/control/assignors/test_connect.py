"""Connect assignments: Kafka Connect's results, a worker's bounce, and invariants."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest
from builders.assignment_groups import patient
from builders.connect_rounds import answer_of, parsed, read
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.control.assignors.connect import (
    AssignmentChange,
    IncrementalLeader,
    Unit,
    assign_eagerly,
    units_of,
)

ROUNDS = Path(__file__).with_name("connect_rounds.txt")
DELAY_MS = 300_000


@pytest.mark.parametrize("number", range(60))
def test_the_incremental_assignor_matches_kafka(number: int) -> None:
    """tests/kafka/test_connect_assignor.py checks these lines against Kafka, and random groups."""
    max_delay_ms, rounds = read(ROUNDS)[number]
    leader = IncrementalLeader(max_delay_ms)
    for question, answer in rounds:
        assert answer_of(leader, question) == parsed(answer), question


class Workers:
    """Workers that follow their assignments; one of them leads."""

    def __init__(self, **running: list[int]) -> None:
        self.running = {name: [("c", task) for task in tasks] for name, tasks in running.items()}
        self.leader = IncrementalLeader(DELAY_MS)
        self.generation = 0

    def round(self, now: int, configured: Iterable[Unit]) -> dict[str, AssignmentChange]:
        self.generation += 1
        done = self.leader.assign(now, (self.generation - 1, self.generation), list(configured), self.running)
        for name, change in done.items():
            self.running[name] = change.started + [u for u in self.running[name] if u not in change.stopped]
        return done

    @property
    def tasks(self) -> dict[str, list[int]]:
        return {name: sorted(task for _, task in runs) for name, runs in self.running.items()}


SIX = [("c", task) for task in range(6)]


@pytest.fixture
def article() -> Workers:
    """Create C1{P1,2} C2{P4,5} C3{P3,6}, after a first round without changes."""
    workers = Workers(C1=[0, 1], C2=[3, 4], C3=[2, 5])
    assert all(change == AssignmentChange() for change in workers.round(0, SIX).values())
    return workers


def test_a_worker_that_returns_in_time_gets_its_tasks_back_in_the_third_round(article: Workers) -> None:
    del article.running["C2"]
    article.round(1_000, SIX)
    assert (article.tasks, article.leader.delay_ms) == ({"C1": [0, 1], "C3": [2, 5]}, DELAY_MS)
    article.running["C2"] = []
    article.round(61_000, SIX)
    assert article.tasks == {"C1": [0, 1], "C3": [2, 5], "C2": []}
    assert article.leader.delay_ms == DELAY_MS - 60_000
    article.round(301_000, SIX)
    assert article.tasks == {"C1": [0, 1], "C3": [2, 5], "C2": [3, 4]}
    assert article.leader.delay_ms == 0


def test_the_tasks_of_a_lost_worker_are_reassigned_after_the_delay(article: Workers) -> None:
    del article.running["C2"]
    article.round(1_000, SIX)
    article.round(301_000, SIX)
    assert article.tasks == {"C1": [0, 1, 3], "C3": [2, 4, 5]}


def test_a_new_leader_does_not_wait_for_missing_workers(article: Workers) -> None:
    """A new leader treats units that no worker runs as new and assigns them at once."""
    del article.running["C1"]
    article.leader = IncrementalLeader(DELAY_MS)
    article.round(1_000, SIX)
    assert (article.tasks, article.leader.delay_ms) == ({"C2": [0, 3, 4], "C3": [1, 2, 5]}, 0)


def test_excess_units_are_revoked_first_and_assigned_in_the_next_round() -> None:
    workers = Workers(C1=[0, 1, 2, 3, 4, 5])
    workers.round(0, SIX)
    workers.running["C2"] = []
    first = workers.round(10, SIX)
    assert (first["C1"].stopped, first["C2"]) == ([("c", 0), ("c", 1), ("c", 2)], AssignmentChange())
    second = workers.round(20, SIX)
    assert (second["C1"], second["C2"].started) == (AssignmentChange(), [("c", 0), ("c", 1), ("c", 2)])


def test_the_eager_assignor_assigns_connectors_before_tasks_in_turn() -> None:
    assigned = assign_eagerly(["w2", "w1"], units_of({"b": 1, "a": 2}))
    assert assigned == {"w1": [("a", -1), ("a", 0), ("b", 0)], "w2": [("b", -1), ("a", 1)]}


@pytest.mark.slow
@patient
@given(st.data())
def test_units_never_run_twice_and_are_balanced_in_the_end(data: st.DataObject) -> None:
    """Workers join and leave while connectors stay; then rounds follow until no delay is left."""
    configured = units_of(data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 6), min_size=1)))
    workers = Workers(w0=[])
    now = 0
    for _ in range(data.draw(st.integers(1, 8))):
        now += data.draw(st.sampled_from([0, 10, 100_000]))
        name = data.draw(st.sampled_from(["w1", "w2", "w3", "w4"]))
        if workers.running.pop(name, None) is None:
            workers.running[name] = []
        workers.round(now, configured)
        assert max(Counter(chain.from_iterable(workers.running.values())).values(), default=1) == 1
    for _ in range(8):
        now += workers.leader.delay_ms
        workers.round(now, configured)
    assert sorted(chain.from_iterable(workers.running.values())) == sorted(configured)
    for kind in (True, False):
        loads = [sum((task == -1) is kind for _, task in runs) for runs in workers.running.values()]
        assert max(loads) - min(loads) <= 1
