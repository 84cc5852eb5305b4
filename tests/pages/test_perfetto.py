"""The Perfetto export follows the rules of the Trace Event Format, for every recorded trace."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from browsing.recorded_traces import NAMES, crowd, lines_of

from koordinator.emulator.pages.perfetto import perfetto_of

Event = dict[str, Any]


@pytest.fixture(params=[*NAMES, "crowd"])
def lines(request: pytest.FixtureRequest) -> list[Event]:
    return lines_of(request.param) if request.param in NAMES else crowd(members=5, events=3000)


@pytest.fixture
def events(lines: list[Event]) -> list[Event]:
    traced: list[Event] = json.loads(json.dumps(perfetto_of(lines)))["traceEvents"]
    return traced


def of(events: list[Event], *phases: str) -> list[Event]:
    return [event for event in events if event["ph"] in phases]


def on_threads(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    threads = defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    return threads


@pytest.mark.slow
def test_every_event_has_the_fields_of_its_phase(events: list[Event]) -> None:
    assert {event["ph"] for event in events} <= {"M", "X", "b", "e", "i", "s", "f", "C"}
    for event in events:
        assert isinstance(event["ts"], int)
        assert event["ts"] >= 0
        assert {"pid", "tid", "name"} <= event.keys()
    assert all(event["dur"] >= 0 for event in of(events, "X"))
    assert all(event["s"] in {"g", "p", "t"} for event in of(events, "i"))
    assert all(isinstance(count, int) and count >= 0 for event in of(events, "C") for count in event["args"].values())


@pytest.mark.slow
def test_slices_of_a_thread_do_not_overlap(events: list[Event]) -> None:
    for thread, slices in on_threads(of(events, "X")).items():
        for before, after in pairwise(slices):
            assert before["ts"] + before["dur"] <= after["ts"], thread


@pytest.mark.slow
def test_every_request_slice_ends_once_and_has_a_unique_id(events: list[Event]) -> None:
    begun = {(event["pid"], event["cat"], event["id"]): event for event in of(events, "b")}
    ended = {(event["pid"], event["cat"], event["id"]): event for event in of(events, "e")}
    assert begun.keys() == ended.keys()
    assert len(of(events, "b")) == len(begun) == len(of(events, "e"))
    for key, event in begun.items():
        assert event["ts"] < ended[key]["ts"]
        assert event["name"] == ended[key]["name"]


@pytest.mark.slow
def test_every_track_has_a_name(events: list[Event]) -> None:
    named = {(event["pid"], event["tid"]) for event in of(events, "M") if event["name"] == "thread_name"}
    processes = {event["pid"] for event in of(events, "M") if event["name"] == "process_name"}
    assert on_threads(events).keys() == named
    assert {event["pid"] for event in events} == processes


@pytest.mark.slow
def test_a_flow_leads_from_the_leader_to_every_assignment(lines: list[Event], events: list[Event]) -> None:
    starts = {event["id"]: event for event in of(events, "s")}
    ends = {event["id"]: event for event in of(events, "f")}
    assert starts.keys() == ends.keys()
    assert len(ends) == len(of(events, "f"))
    slices = on_threads(of(events, "X"))
    for event in of(events, "s", "f"):
        here = slices[event["pid"], event["tid"]]
        assert any(each["ts"] <= event["ts"] <= each["ts"] + each["dur"] for each in here), event
    assigned = [line for line in lines if line.get("api") == "SyncGroup" and (line.get("body") or {}).get("assignment")]
    assert assigned
    assert {line["seq"] for line in assigned} <= {event["args"]["seq"] for event in ends.values()}


@pytest.mark.slow
def test_events_of_a_group_are_in_the_order_of_the_trace(lines: list[Event], events: list[Event]) -> None:
    when = {event["args"]["seq"]: event["ts"] for event in of(events, "b", "e", "i")}
    seqs = [line["seq"] for line in lines if "group_id" in line and line["seq"] in when]
    assert [when[seq] for seq in seqs] == sorted(when[seq] for seq in seqs)


@pytest.mark.slow
def test_timestamps_are_in_group_time(lines: list[Event], events: list[Event]) -> None:
    clock = {line["seq"]: line["group_ts_us"] for line in lines if "group_ts_us" in line}
    for event in of(events, "b", "e"):
        if event["args"]["seq"] in clock:
            assert 0 <= event["ts"] - clock[event["args"]["seq"]] < 1000


@pytest.mark.slow
def test_the_counters_end_with_the_final_values(lines: list[Event], events: list[Event]) -> None:
    bodies = [line["body"] for line in lines if line.get("api") == "SyncGroup" and "body" in line]
    assigned = [partitions for body in bodies for partitions in (body.get("assignment") or {}).values()]
    partitions = len({partition for group in assigned for partition in group})
    last: dict[tuple[int, str], int] = {}
    for event in of(events, "C"):
        last[event["pid"], event["name"]] = event["args"][event["name"]]
    (pid,) = {pid for pid, name in last if name == "members"}
    assert last[pid, "members"] > 0
    assert last[pid, "owned partitions"] == partitions


def test_an_empty_trace_can_be_exported() -> None:
    assert perfetto_of([])["traceEvents"][0]["ph"] == "M"
