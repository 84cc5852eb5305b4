"""Synthetic traces: what the emulator would have written, the same for the same seed."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor
from koordinator.emulator.trace.trace import Trace
from koordinator.emulator.verify.conformance import conformance, failures
from koordinator.emulator.verify.story import Story
from koordinator.pipeline import generate
from koordinator.pipeline.generate import stories, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.pipeline.short_way import Time


class LongWay(Trace):
    """A trace that is written as `--trace` writes it."""

    def __init__(
        self,
        wall_us: Callable[[], int],
        sink: Callable[[str], None],
        header: Mapping[str, object],
        software: tuple[str, str],
    ) -> None:
        del software
        super().__init__(wall_us, sink=sink, header=header)


class LongTroupe(PuppetSupervisor):
    """Puppets that go the way of all puppets, and only when it is their turn."""

    def __init__(self, brokers: ClusterRuntime, trace: LongWay, time: Time) -> None:
        del trace, time
        super().__init__(brokers)

    def beat_until(self, until: int) -> None:
        """Nobody goes first."""


@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("seed", range(6))
def test_the_short_way_of_heartbeats_and_commits_leaves_the_lines_of_the_long_way_byte_for_byte(
    monkeypatch: pytest.MonkeyPatch, seed: int, number: int
) -> None:
    monkeypatch.setattr(generate, "SOFTWARE", ((("", ""), ("", "")),))
    short = told(seed, number, 1_500)
    monkeypatch.setattr(generate, "History", LongWay)
    monkeypatch.setattr(generate, "ShortWay", LongTroupe)
    long = told(seed, number, 1_500)
    assert short.lines == long.lines


def test_the_same_seed_gives_the_same_traces_and_another_one_others() -> None:
    assert [story.lines for story in stories(3, 2_000, 800)] == [story.lines for story in stories(3, 2_000, 800)]
    assert told(3, 1, 500).lines != told(4, 1, 500).lines


def test_a_trace_does_not_depend_on_those_before_it() -> None:
    first, second, _ = stories(3, 2_400, 800)
    assert (first.lines, second.lines) == (told(3, 1, 800).lines, told(3, 2, 800).lines)


def test_there_are_as_many_events_as_are_wanted_and_hardly_more() -> None:
    assert 3_000 <= sum(story.events for story in stories(5, 3_000, 1_000)) < 3_300


def test_groups_of_all_kinds_rebalance_for_many_causes_between_their_heartbeats() -> None:
    lines = [json.loads(line) for story in stories(0, 40_000, 4_000) for line in story.lines]
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


def test_time_and_numbers_only_rise_and_every_request_is_answered_or_waits() -> None:
    for story in stories(0, 8_000, 4_000):
        header, *events, _ = map(json.loads, story.lines)
        assert header["kind"] == "header"
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        times = [event["wall_ts"] for event in events]
        assert times == sorted(times)
        asked = {(each["conn_id"], each["correlation_id"]) for each in events if each["kind"] == "request"}
        answered = [(each["conn_id"], each["correlation_id"]) for each in events if each["kind"] == "response"]
        assert len(answered) == len(set(answered)), "no request is answered twice"
        assert set(answered) <= asked


def test_members_that_behave_pass_the_client_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "BEHAVIOURS", (({"kind": "healthy"}, 1),))
    for number in range(1, 6):
        lines = [json.loads(line) for line in told(0, number, 2_000).lines[:-1]]
        for group_id in {line["group_id"] for line in lines if "group_id" in line}:
            assert not failures(conformance(Story(lines, group_id))), f"{group_id} of trace {number}"
