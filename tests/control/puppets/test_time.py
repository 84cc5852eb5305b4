"""Puppets run in the time of their group."""

from __future__ import annotations

import pytest
from scenes.puppet_scene import HEARTBEAT_MS, SESSION_MS, PuppetScene

from koordinator import Simulation

HOUR_MS = 3_600_000


@pytest.mark.slow
def test_heartbeats_are_sent_during_a_clock_jump() -> None:
    scene = PuppetScene()
    scene.puppet("healthy", heartbeat_interval_ms=None)
    scene.puppet("silent", behaviour="silent", session_timeout_ms=20_000)
    scene.wait(HEARTBEAT_MS)
    assert scene.members() == {"healthy", "silent"}
    before = scene.now
    scene.advance(HOUR_MS)
    assert scene.now == before
    assert scene.members() == {"healthy"}
    assert scene.is_settled()
    (expiry,) = scene.events("timer", timer="SessionExpiry")
    assert expiry["group_ts_us"] // 1000 <= before + 20_000
    beats = scene.events("request", api="Heartbeat")
    assert len(beats) > HOUR_MS // HEARTBEAT_MS
    # the partitions of the silent puppet are reassigned at the next heartbeat, not at the end of the hour
    (last,) = scene.events("puppet", puppet="healthy", change="assigned")[-1:]
    assert last["group_ts_us"] <= expiry["group_ts_us"] + HEARTBEAT_MS * 1000
    assert scene.holds("healthy") == {"healthy": [0, 1, 2, 3]}


@pytest.mark.slow
def test_a_puppet_waits_for_a_stopped_clock() -> None:
    scene = PuppetScene(group_clock="manual")
    scene.puppet("slow", behaviour={"kind": "straggler", "delay_s": 20}, heartbeat_interval_ms=None)
    scene.puppet("two", heartbeat_interval_ms=None)
    scene.wait(HOUR_MS)
    assert scene.group().state.value == "PreparingRebalance"
    scene.advance(20_000 - 1)
    assert scene.group().state.value == "PreparingRebalance"
    scene.advance(1)
    assert scene.is_settled()
    assert scene.members() == {"slow", "two"}


def test_a_stopped_clock_does_not_block_coordinator_lookups() -> None:
    scene = PuppetScene(2, group_clock="manual")
    scene.puppet("one", heartbeat_interval_ms=None)
    there = 3 - scene.runtime.cluster.coordinator_of("g")
    scene.do(scene.runtime.move_coordinator, "g", there)
    scene.wait(1_000)
    assert scene.events("request", api="Heartbeat")[-1]["node"] == there
    scene.advance(10 * SESSION_MS)
    assert scene.members() == {"one"}


def test_a_heartbeat_resets_both_its_timers() -> None:
    scene = PuppetScene()
    scene.puppet("one", heartbeat_interval_ms=None)
    scene.wait(100)
    scene.advance(HEARTBEAT_MS)
    assert len(scene.events("request", api="Heartbeat")) == 1
    scene.wait(199)
    assert len(scene.events("request", api="Heartbeat")) == 1
    scene.wait(1)
    assert len(scene.events("request", api="Heartbeat")) == 2


def test_a_backoff_ends_in_either_time() -> None:
    scene = PuppetScene(2, group_clock="manual")
    scene.puppet("silent", behaviour="silent", instance_id="1")
    scene.do(scene.runtime.move_coordinator, "g", 3 - scene.runtime.cluster.coordinator_of("g"), 50)
    scene.puppet("two", instance_id="2")
    scene.wait(100)
    assert scene.events("response", api="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS")
    assert scene.describe("two").waits_for == "JoinGroup"
    connections = len(scene.events("conn", change="opened"))
    scene.advance(150)
    assert len(scene.events("conn", change="opened")) == connections


def test_groups_of_one_cluster_have_separate_clocks() -> None:
    scene = PuppetScene()
    for group in ("g", "h"):
        scene.puppet("silent", behaviour="silent", group=group)
    scene.advance(SESSION_MS, "g")
    assert scene.members("g") == set()
    assert scene.members("h") == {"silent"}


def test_a_healthy_puppet_learns_of_a_rebalance_within_200_ms_of_real_time() -> None:
    scene = PuppetScene()
    scene.puppet("one", heartbeat_interval_ms=None, session_timeout_ms=45_000)
    scene.puppet("two", heartbeat_interval_ms=None, session_timeout_ms=45_000)
    scene.wait(200)
    assert scene.is_settled()
    assert scene.members() == {"one", "two"}


@pytest.mark.slow
def test_a_handle_advances_an_hour_at_once() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("healthy").join().wait_state("stable")
        silent = group.create_puppet("silent", behaviour="silent").join()
        group.wait_stable(members=2)
        (fired,) = [each for each in group.advance("1h", keep_alive="none") if each.kind == "session"]
        assert fired.member_id == silent.member_id
        assert [member.client_id for member in group.members] == ["healthy"]
        assert group.wait_stable(members=1).state == "Stable"


def test_puppets_are_ticked_once_after_any_number_of_resets() -> None:
    scene = PuppetScene()
    for _ in range(3):
        scene.puppet("one")
        scene.puppets._supervisor.stop_all(scene.now)
    scene.puppet("two")
    assert list(scene.runtime.tickers) == [scene.puppets._supervisor]
