"""Metadata and assignments of the Connect worker role."""

import pytest

from koordinator.emulator.control.puppets.worker_role import WorkerRole
from koordinator.wire.messages.connect_protocol import read_worker_assignment, read_worker_subscription
from koordinator.wire.messages.join_group import JoinGroupResponseMember

CONNECTORS = {"c": 4}
ALL = ("sessioned", "compatible", "default")


class Round:
    """A group of worker roles; the first one leads."""

    def __init__(self, protocol: str, **workers: WorkerRole) -> None:
        self.protocol = protocol
        self.workers = workers
        self.generation = 0

    def __call__(self, now: int = 0) -> dict[str, int | None]:
        self.generation += 1
        leader_id = next(iter(self.workers))
        for worker in self.workers.values():
            worker.prepare(self.protocol)
        members = [
            JoinGroupResponseMember(member_id=name, metadata=dict(worker.offers())[self.protocol])
            for name, worker in self.workers.items()
        ]
        assignments = self.workers[leader_id].assign(now, self.protocol, self.generation, leader_id, members)
        return {
            name: worker.take(now, self.protocol, self.generation, assignments[name])
            for name, worker in self.workers.items()
        }

    @property
    def holds(self) -> dict[str, dict[str, list[int]]]:
        return {name: worker.holds for name, worker in self.workers.items()}


def worker(**options: object) -> WorkerRole:
    return WorkerRole(ALL, CONNECTORS, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["sessioned", "compatible"])
def test_a_worker_keeps_its_tasks_until_their_revocation_and_then_rejoins(protocol: str) -> None:
    group = Round(protocol, w1=worker())
    assert group() == {"w1": None}
    assert group.holds == {"w1": {"c": [-1, 0, 1, 2, 3]}}
    group.workers["w2"] = worker()
    assert group() == {"w1": 0, "w2": None}
    assert group.holds == {"w1": {"c": [-1, 2, 3]}, "w2": {}}
    assert group() == {"w1": None, "w2": None}
    assert group.holds == {"w1": {"c": [-1, 2, 3]}, "w2": {"c": [0, 1]}}


def test_an_eager_worker_stops_all_tasks_before_a_rejoin() -> None:
    group = Round("default", w1=worker(), w2=worker())
    assert group() == {"w1": None, "w2": None}
    assert group.holds == {"w1": {"c": [-1, 1, 3]}, "w2": {"c": [0, 2]}}
    group.workers["w1"].prepare("default")
    assert group.workers["w1"].holds == {}


def test_workers_rejoin_after_the_delay() -> None:
    group = Round("sessioned", w1=worker(running={"c": [-1, 0, 1]}), w2=worker(running={"c": [2, 3]}))
    assert group() == {"w1": None, "w2": None}
    del group.workers["w2"]
    assert group(now=10) == {"w1": 300_000}
    assert group(now=20_010) == {"w1": 280_000}
    assert group(now=300_010) == {"w1": None}
    assert group.holds == {"w1": {"c": [-1, 0, 1, 2, 3]}}


def test_the_delay_is_the_leaders_setting() -> None:
    leader = worker(running={"c": [-1, 0, 1]}, scheduled_rebalance_max_delay_ms=5)
    group = Round("sessioned", w1=leader, w2=worker(running={"c": [2, 3]}))
    group()
    del group.workers["w2"]
    assert group() == {"w1": 5}


def test_a_worker_reports_its_url_and_tasks() -> None:
    offered = dict(worker(url="http://w1:8083", running={"c": [0]}).offers())
    assert list(offered) == list(ALL)
    subscription = read_worker_subscription(offered["sessioned"])
    assert (subscription.url, subscription.allocation is not None) == ("http://w1:8083", True)
    assert read_worker_subscription(offered["default"]).allocation is None
    assert read_worker_subscription(dict(worker().offers())["sessioned"]).allocation is None


def test_the_assignment_names_the_leader_and_its_url() -> None:
    leader = worker(url="http://w1:8083")
    member = JoinGroupResponseMember(member_id="w1", metadata=dict(leader.offers())["sessioned"])
    assignment = read_worker_assignment(leader.assign(0, "sessioned", 1, "w1", [member])["w1"])
    assert (assignment.leader, assignment.leader_url, assignment.error) == ("w1", "http://w1:8083", 0)


def test_a_change_of_connectors_makes_the_assignment_stale() -> None:
    connectors = {"c": 1}
    leader = WorkerRole(ALL, connectors)
    assert not leader.is_assignment_stale()
    group = Round("sessioned", w1=leader)
    group()
    assert not leader.is_assignment_stale()
    connectors["c"] = 2
    assert leader.is_assignment_stale()
    group()
    assert (leader.is_assignment_stale(), leader.holds) == (False, {"c": [-1, 0, 1]})


def test_a_new_process_starts_without_tasks_and_state() -> None:
    lost = worker(running={"c": [0]})
    lost.lose()
    assert lost.holds == {}
    assert read_worker_subscription(dict(lost.offers())["sessioned"]).allocation is None


def test_an_unknown_worker_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match=r"workers support sessioned, compatible, default, not range"):
        WorkerRole(["range"], CONNECTORS)


def test_unreadable_metadata_is_treated_as_empty() -> None:
    left_out = worker(running={"c": [0]})
    assert left_out.take(0, "sessioned", 1, b"") is None
    assert left_out.holds == {"c": [0]}
    members = [
        JoinGroupResponseMember(member_id="w1", metadata=dict(left_out.offers())["sessioned"]),
        JoinGroupResponseMember(member_id="w2", metadata=b"?"),
    ]
    assert set(left_out.assign(0, "sessioned", 2, "w1", members)) == {"w1", "w2"}
