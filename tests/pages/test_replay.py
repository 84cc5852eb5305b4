"""Copy as test: the test of every scene passes, and its members end in the same states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from browser.recorded_traces import NAMES, crowd, lines_of, with_faults

from koordinator import Simulation
from koordinator.emulator.pages.lanes import lanes_of
from koordinator.emulator.pages.replay import source_of_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster

    Lines = list[dict[str, Any]]


def played(scene: Callable[[Simulation, Cluster], None], brokers: int = 1) -> Lines:
    """Return the trace of a scene of group svc."""
    simulation = Simulation(topics={"orders": 4}, seed=1, brokers=brokers)
    with simulation as cluster:
        scene(simulation, cluster)
        simulation.pass_time(3)
        return cluster._port.trace_lines()


def two_processes(simulation: Simulation, cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.puppet("a", instance_id="a").join()
    group.puppet("b", instance_id="b").join()
    simulation.pass_time(3)
    group.puppet("b-again", instance_id="b").join()


def a_fence(simulation: Simulation, cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.puppet("a", instance_id="a").join()
    group.puppet("b").join()
    simulation.pass_time(3)
    group.fence("a")
    simulation.pass_time(20)


def an_eviction(simulation: Simulation, cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.puppet("a").join()
    group.puppet("b").join()
    simulation.pass_time(3)
    group.evict("b")


def a_crash(simulation: Simulation, cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.puppet("a").join()
    crashed = group.puppet("b").join()
    simulation.pass_time(3)
    crashed.stop()
    simulation.pass_time(20)
    crashed.join()


def an_expired_session(simulation: Simulation, cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.puppet("a").join()
    group.puppet("b").join()
    simulation.pass_time(3)
    group.expire_session("b")


def a_failover(simulation: Simulation, cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.puppet("a").join()
    simulation.pass_time(3)
    node = cluster.coordinator("svc")
    cluster.move_coordinator("svc", to=2 if node.id == 1 else 1)


SCENES: dict[str, Callable[[], Lines]] = {
    **{name: lambda name=name: lines_of(name) for name in NAMES},  # type: ignore[misc]
    "crowd": lambda: crowd(members=3, events=400),
    "with_faults": with_faults,
    **{
        scene.__name__: lambda scene=scene: played(scene, brokers=2)  # type: ignore[misc]
        for scene in (two_processes, a_fence, an_eviction, a_crash, an_expired_session, a_failover)
    },
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_copied_test_of_every_scene_passes(scene: str) -> None:
    (group,) = lanes_of(line for line in SCENES[scene]() if line["kind"] != "header").values()
    names: dict[str, Any] = {}
    exec(compile(source_of_test(group), scene, "exec"), names)  # noqa: S102 - the source that the pages offer
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    simulation = Simulation()
    with simulation as cluster:
        test(cluster)
        simulation.pass_time(3)
        replayed = lanes_of(line for line in cluster._port.trace_lines() if line["kind"] != "header")[group.id]
    members = {lane.id for lane in replayed.lanes.values() if lane.is_member}
    assert members == {lane.id for lane in group.lanes.values() if lane.is_member}


def test_two_processes_of_one_instance_id_have_lanes_of_their_own() -> None:
    (group,) = lanes_of(line for line in played(two_processes) if line["kind"] != "header").values()
    assert [lane.name for lane in group.lanes.values()] == ["a", "b", "b #2"]
    first, second = group.lanes["b"], group.lanes["b #2"]
    assert (first.spans[-1].state, first.owned, first.is_member) == ("removed", (), False)
    assert (second.state, second.owned, second.is_member) == ("stable", ("orders-2", "orders-3"), True)
    assert first.spans[-1].start < second.spans[-1].start


def test_a_process_that_no_request_shows_has_a_lane_after_a_fence() -> None:
    (group,) = lanes_of(line for line in played(a_fence) if line["kind"] != "header").values()
    assert [span.state for span in group.lanes["a #2"].spans] == ["away", "removed"]
