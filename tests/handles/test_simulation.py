"""A cluster on virtual time: the same handle without sockets, and nothing depends on anything but its arguments."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from koordinator import Emulator, Simulation
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.port import ClusterStopped
from koordinator.handles.simulation import BEGIN_MS

if TYPE_CHECKING:
    from pathlib import Path

A_MEMBER = {"group_id": "g", "generation": 3, "members": [{"member_id": "a", "session_timeout_ms": 45_000}]}


def test_the_handle_is_that_of_an_emulator() -> None:
    with Simulation(topics={"orders": 2}, brokers=2) as cluster:
        assert cluster.produce("orders", "a", "b") == 2
        assert [record.value for record in cluster.records("orders")] == [b"a", b"b"]
        assert cluster.bootstrap_servers == "simulated:9092,simulated:9093"
        assert {number: node.state for number, node in cluster.nodes.items()} == {1: "up", 2: "up"}


def test_a_wait_takes_virtual_time_only() -> None:
    began = time.monotonic()
    with Simulation() as cluster:
        cluster.load_groups([A_MEMBER])
        with pytest.raises(GroupTimeout, match="was not stable with 2 members within 40 s"):
            cluster.group("g").wait_stable(members=2, timeout=40)
        assert cluster.group("g").state == "Stable"
        with pytest.raises(GroupTimeout, match="Empty, generation 4"):
            cluster.group("g").wait_stable(members=2, timeout=6)
        events = [event for event in cluster.events(group="g") if event["kind"] == "timer"]
        assert [event["timer"] for event in events] == ["SessionExpiry"]
    # in real time the waits would take 46 s
    assert time.monotonic() - began < 40


def test_virtual_time_passes_on_request() -> None:
    with Simulation() as cluster:
        cluster.load_groups([A_MEMBER])
        cluster.pass_time(44.999)
        assert cluster.group("g").state == "Stable"
        cluster.pass_time(0.001)
        assert cluster.group("g").state == "Empty"
        with pytest.raises(ValueError, match="the duration -1 is negative"):
            cluster.pass_time(-1)
        cluster.pass_time("1h")
        assert cluster.group("g").now_ms == BEGIN_MS + 45_000 + 3_600_000


def test_only_a_simulation_has_virtual_time() -> None:
    with (
        Emulator() as cluster,
        pytest.raises(ValueError, match="the time of this cluster is real"),
    ):
        cluster.pass_time("5s")


def test_nodes_are_stopped_killed_started_added_and_removed() -> None:
    with Simulation(brokers=2) as cluster:
        cluster.load_groups([A_MEMBER])
        here = cluster.coordinator("g")
        assert here is not None
        here.stop()
        assert here.state == "down"
        there = cluster.coordinator("g")
        assert there is not None
        assert there.id != here.id
        here.start()
        there.kill()
        assert cluster.group("g").generation == 3
        added = cluster.add_node()
        assert added.address() == "simulated:9094"
        cluster.move_coordinator("g", to=added.id, load=5)
        assert cluster.group("g").wait_stable(timeout=5).generation == 3
        there.remove()
        assert there.state == "removed"


def test_the_same_seed_gives_the_same_trace_byte_for_byte(tmp_path: Path) -> None:
    def play(name: str, seed: int) -> bytes:
        file = tmp_path / name
        with Simulation(topics={"orders": 3}, seed=seed, trace=file, brokers=3) as cluster:
            cluster.load_groups([A_MEMBER])
            cluster.move_coordinator("g", to=2, load=1)
            cluster.group("g").wait_stable()
            cluster.nodes[2].kill()
            with pytest.raises(GroupTimeout):
                cluster.group("g").wait_stable(members=2, timeout=120)
        return file.read_bytes()

    assert play("first", 7) == play("second", 7) != play("third", 8)


def test_a_handle_of_a_simulation_that_ended_says_so() -> None:
    with Simulation() as cluster:
        pass
    with pytest.raises(ClusterStopped, match=r"Group\('g'\)\.state: the simulated cluster has stopped"):
        _ = cluster.group("g").state
