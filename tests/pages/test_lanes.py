"""The lanes of a group: which process has which, and from when on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing.recorded_traces import NAMES, lines_of
from scenes.short_groups import a_failover, a_fence, played, two_processes

from koordinator import Simulation
from koordinator.emulator.pages.feed import drawn
from koordinator.emulator.pages.lanes import lanes_of

if TYPE_CHECKING:
    from scenes.short_groups import Lines

    from koordinator.emulator.pages.group_lanes import GroupLanes


def group_of(lines: Lines) -> GroupLanes:
    (group,) = lanes_of(line for line in lines if line["kind"] != "header").values()
    return group


def test_two_processes_of_one_instance_id_have_lanes_of_their_own() -> None:
    group = group_of(played(two_processes))
    assert [lane.name for lane in group.lanes.values()] == ["a", "b", "b #2"]
    first, second = group.lanes["b"], group.lanes["b #2"]
    assert (first.spans[-1].state, first.owned, first.is_member) == ("removed", (), False)
    assert (second.state, second.owned, second.is_member) == ("stable", ("orders-2", "orders-3"), True)
    assert first.spans[-1].start < second.spans[-1].start


def test_a_process_that_no_request_shows_has_a_lane_after_a_fence() -> None:
    group = group_of(played(a_fence))
    assert [span.state for span in group.lanes["a #2"].spans] == ["away", "removed"]


def test_loaded_members_have_lanes_with_their_partitions_before_any_request() -> None:
    lines = played(a_failover)
    loaded = next(at for at, line in enumerate(lines) if line.get("cause") == "loaded")
    first = next(at for at, line in enumerate(lines) if at > loaded and line["kind"] == "request")
    group = group_of(lines[loaded:first])
    assert {lane.name: (lane.state, lane.owned) for lane in group.lanes.values()} == {
        "a": ("stable", ("orders-2", "orders-3")),
        "b": ("stable", ("orders-0", "orders-1")),
    }


def test_a_failover_keeps_members_in_their_lanes() -> None:
    group = group_of(played(a_failover))
    assert {lane.name: lane.state for lane in group.lanes.values()} == {"a": "stable", "b": "stable"}
    assert sum(map(len, (lane.owned for lane in group.lanes.values()))) == 4


def test_a_lane_has_the_user_of_an_authenticated_client() -> None:
    call = {"api": "JoinGroup", "group_id": "g", "member_id": "", "client_id": "svc-1", "conn_id": 1, "wall_ts": 1}
    lines = [
        {"kind": "request", "seq": seq, "correlation_id": seq, **call, **user}
        for seq, user in enumerate(({}, {"principal": "User:alice"}, {"principal": "User:bob"}), start=1)
    ]
    rows = group_of(lines).take()
    assert [row[-1] for row in rows if row[0] == "lane"] == [None, "alice", "bob"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_trace_that_begins_anywhere_is_drawn(name: str) -> None:
    lines = lines_of(name)[1:]
    for start in range(len(lines)):
        assert drawn(lines[start:]).keys() == {"groups", "drawings"}


@pytest.mark.parametrize("column", ["api", "member_id", "group_ts_us", "generation", "cause", "reason", "conn_id"])
@pytest.mark.parametrize("name", NAMES)
def test_columns_that_a_log_lacks_are_not_necessary(name: str, column: str) -> None:
    lines = [{key: value for key, value in line.items() if key != column} for line in lines_of(name)]
    assert "orders-svc" in drawn(lines)["drawings"]


def test_a_group_that_migrates_has_generations_and_then_epochs() -> None:
    with Simulation(topics={"orders": 4}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("old").join()
        group.create_puppet("new", group_protocol="consumer").join()
        group.wait_stable(members=2, all_owned=True)
        rows = lanes_of(cluster.events())["svc"].take()
    titles = [row[3] for row in rows if row[0] == "story"]
    assert titles == ["a new member joins (old): generation 1, at once", "a new member joins (new): epoch 2, in 200 ms"]
    assert [row[5] for row in rows if row[0] == "state"] == ["generation"] * 5 + ["epoch"] * 3
