"""Synthetic traces: deterministic, well formed, and diverse."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from koordinator.emulator.verify.conformance import conformance, failures
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.pipeline import generate
from koordinator.pipeline.generate import generate_trace, trace_sizes

if TYPE_CHECKING:
    import pytest

    from koordinator.pipeline.generate import SyntheticTrace


def generated(seed: int, events: int, events_per_trace: int) -> list[SyntheticTrace]:
    sizes = trace_sizes(events, events_per_trace)
    return [generate_trace(seed, number, size) for number, size in enumerate(sizes, 1)]


def test_the_same_seed_gives_the_same_traces_and_another_seed_gives_others() -> None:
    first = generate_trace(3, 1, 800).lines
    assert first == generate_trace(3, 1, 800).lines
    assert first != generate_trace(4, 1, 800).lines
    assert first != generate_trace(3, 2, 800).lines


def test_traces_share_the_events_equally_and_the_last_takes_the_rest() -> None:
    assert trace_sizes(2_400, 1_000) == [1_000, 1_000, 400]
    assert trace_sizes(2_000, 1_000) == [1_000, 1_000]
    assert trace_sizes(1, 1_000) == [1]


def test_a_trace_has_at_least_the_requested_events_and_hardly_more() -> None:
    assert 3_000 <= sum(trace.events for trace in generated(5, 3_000, 1_000)) < 3_300


def test_a_trace_of_one_event_keeps_all_events_of_its_groups_start() -> None:
    trace = generate_trace(7, 1, 1)
    sequence = [json.loads(line).get("seq") for line in trace.lines]
    assert trace.events >= 1
    assert sequence[1:] == list(range(1, len(trace.lines)))


def test_groups_of_several_kinds_rebalance_for_many_causes_between_heartbeats() -> None:
    lines = [json.loads(line) for trace in generated(0, 40_000, 4_000) for line in trace.lines]
    apis = Counter(line.get("api") for line in lines)
    assert 0.65 < apis["Heartbeat"] / len(lines) < 0.85
    causes = {line["cause"] for line in lines if line.get("state_to") == "PreparingRebalance"}
    assert causes >= {"member_join", "member_leave", "session_expired", "leader_rejoin", "metadata_change"}
    assert {line["error"] for line in lines if line.get("error")} >= {
        "FENCED_INSTANCE_ID",
        "MEMBER_ID_REQUIRED",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    }
    assert any(line["kind"] == "avoided_static" for line in lines)
    assert {line["body"]["protocol"] for line in lines if "protocol" in line.get("body", {})} >= {
        "range",
        "cooperative-sticky",
    }


def test_times_and_sequence_numbers_only_rise_and_each_request_has_at_most_one_response() -> None:
    for trace in generated(0, 8_000, 4_000):
        header, *events, _ = map(json.loads, trace.lines)
        assert header["kind"] == "header"
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        times = [event["wall_ts"] for event in events]
        assert times == sorted(times)
        requests = {(event["conn_id"], event["correlation_id"]) for event in events if event["kind"] == "request"}
        responses = [(event["conn_id"], event["correlation_id"]) for event in events if event["kind"] == "response"]
        assert len(responses) == len(set(responses)), "a request has two responses"
        assert set(responses) <= requests


def test_healthy_members_pass_the_client_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "BEHAVIOURS", (({"kind": "healthy"}, 1),))
    for number in range(1, 6):
        lines = [json.loads(line) for line in generate_trace(0, number, 2_000).lines[:-1]]
        for group_id in {line["group_id"] for line in lines if "group_id" in line}:
            assert not failures(conformance(GroupTrace(lines, group_id))), f"{group_id} of trace {number}"
