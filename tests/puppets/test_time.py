"""Puppets live in the time of their group."""

from __future__ import annotations

from scenes.puppet_scene import BEAT_MS, SESSION_MS, Show

from koordinator import Simulation

HOUR_MS = 3_600_000


def test_heartbeats_come_in_between_when_the_clock_of_a_group_jumps() -> None:
    show = Show()
    show.puppet("healthy", heartbeat_interval_ms=None)
    show.puppet("silent", behaviour="silent", session_timeout_ms=20_000)
    show.wait(BEAT_MS)
    assert show.members() == {"healthy", "silent"}
    before = show.now
    show.advance(HOUR_MS)
    assert show.now == before
    assert show.members() == {"healthy"}
    assert show.is_settled()
    (expiry,) = show.events("timer", timer="SessionExpiry")
    assert expiry["group_ts_us"] // 1000 <= before + 20_000
    beats = show.events("request", api="Heartbeat")
    assert len(beats) > HOUR_MS // BEAT_MS
    # what the silent one had is assigned anew at the next heartbeat, not at the end of the hour
    (last,) = show.events("puppet", puppet="healthy", change="assigned")[-1:]
    assert last["group_ts_us"] <= expiry["group_ts_us"] + BEAT_MS * 1000
    assert show.holds("healthy") == {"healthy": [0, 1, 2, 3]}


def test_a_puppet_waits_for_a_clock_that_stands_still() -> None:
    show = Show(group_clock="manual")
    show.puppet("slow", behaviour={"kind": "straggler", "delay_s": 20}, heartbeat_interval_ms=None)
    show.puppet("two", heartbeat_interval_ms=None)
    show.wait(HOUR_MS)
    assert show.group().state.value == "PreparingRebalance"
    show.advance(20_000 - 1)
    assert show.group().state.value == "PreparingRebalance"
    show.advance(1)
    assert show.is_settled()
    assert show.members() == {"slow", "two"}


def test_a_clock_that_stands_still_keeps_nobody_from_finding_a_coordinator_that_moved() -> None:
    show = Show(2, group_clock="manual")
    show.puppet("one", heartbeat_interval_ms=None)
    there = 3 - show.runtime.cluster.coordinator_of("g")
    show.do(show.runtime.move_coordinator, "g", there)
    show.wait(1_000)
    assert show.events("request", api="Heartbeat")[-1]["node"] == there
    show.advance(10 * SESSION_MS)
    assert show.members() == {"one"}


def test_a_heartbeat_in_one_time_puts_off_the_next_one_in_the_other() -> None:
    show = Show()
    show.puppet("one", heartbeat_interval_ms=None)
    show.wait(100)
    show.advance(BEAT_MS)
    assert len(show.events("request", api="Heartbeat")) == 1
    show.wait(199)
    assert len(show.events("request", api="Heartbeat")) == 1
    show.wait(1)
    assert len(show.events("request", api="Heartbeat")) == 2


def test_a_pause_that_is_over_in_one_time_is_over_in_the_other() -> None:
    show = Show(2, group_clock="manual")
    show.puppet("silent", behaviour="silent", instance_id="1")
    show.do(show.runtime.move_coordinator, "g", 3 - show.runtime.cluster.coordinator_of("g"), 50)
    show.puppet("two", instance_id="2")
    show.wait(100)
    assert show.events("response", api="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS")
    assert show.look("two")["waits_for"] == "JoinGroup"
    connections = len(show.events("conn", change="opened"))
    show.advance(150)
    assert len(show.events("conn", change="opened")) == connections


def test_groups_of_one_cluster_have_their_own_time() -> None:
    show = Show()
    for group in ("g", "h"):
        show.puppet("silent", behaviour="silent", group=group)
    show.advance(SESSION_MS, "g")
    assert show.members("g") == set()
    assert show.members("h") == {"silent"}


def test_a_healthy_puppet_learns_of_a_rebalance_within_200_ms_of_real_time() -> None:
    show = Show()
    show.puppet("one", heartbeat_interval_ms=None, session_timeout_ms=45_000)
    show.puppet("two", heartbeat_interval_ms=None, session_timeout_ms=45_000)
    show.wait(200)
    assert show.is_settled()
    assert show.members() == {"one", "two"}


def test_an_hour_passes_at_once_through_the_handle() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("svc")
        group.puppet("healthy").join().wait("stable")
        silent = group.puppet("silent", behaviour="silent").join()
        group.wait_stable(members=2)
        (fired,) = [each for each in group.advance("1h", keep_alive="none") if each.kind == "session"]
        assert fired.member_id == silent.member_id
        assert [member.client_id for member in group.members] == ["healthy"]
        assert group.wait_stable(members=1).state == "Stable"
