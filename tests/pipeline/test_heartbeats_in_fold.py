"""The fold gives the same rows with all heartbeats and without the regular ones."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from scenes.growing_traces import Suite
from scenes.trace_tales import STABLE, Tale
from spark.event_frames import row
from spark.loads import TRACES

from koordinator.pipeline.fold import frames
from koordinator.pipeline.fold.event_lines import trace_lines
from koordinator.pipeline.fold.heartbeats import Heartbeats
from koordinator.pipeline.fold.trace_fold import fold
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.schema import EVENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.trace.exchanges import Line


def beats(tale: Tale, times: int, interval_ms: float, *names: str) -> None:
    for _ in range(times):
        for name in names:
            tale.beat(name)
        tale.passes(interval_ms)


def told() -> list[Line]:
    """Tell of regular, late, refused and rapid heartbeats, and of what happens between them."""
    tale = Tale()
    tale.forms({"a": [0], "b": [1]})
    beats(tale, 10, 1500, "a", "b")
    tale.commits("a", 1, 0)
    beats(tale, 5, 1500, "a", "b")
    tale.passes(4000)  # longer than half a session
    beats(tale, 10, 1500, "a", "b")
    beats(tale, 60, 10, "a")  # a storm
    beats(tale, 5, 1500, "a", "b")
    tale.line("node", of_group=False, change="stopped")
    beats(tale, 5, 1500, "a", "b")
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.forms({"a": [0, 1]}, before=STABLE)
    beats(tale, 5, 1500, "a")
    beats(tale, 5, 1500, "b")  # accepted in an old generation
    tale.closes("a")
    return tale.lines


def moved() -> list[Line]:
    """Tell of a coordinator that moved while its member goes on."""
    tale = Tale()
    tale.forms({"a": [0]})
    tale.beat("a", error="NOT_COORDINATOR")
    beats(tale, 5, 1500, "a")
    return tale.lines


def recorded(name: str) -> list[Line]:
    return [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]


def generated(seed: int) -> list[Line]:
    return [json.loads(line) for line in generate_trace(seed, 1, 1_000).lines]


TRACES_TOLD = {
    "told": told(),
    "moved": moved(),
    **{path.stem: recorded(path.stem) for path in sorted(TRACES.glob("*.jsonl"))},
    **{f"generated-{seed}": generated(seed) for seed in range(5)},
    **{f"suite-{seed}": Suite(seed, transactions=True, consumer_groups=True).lines(1_000) for seed in range(5)},
}


def table(lines: Iterable[Line]) -> pa.Table:
    rows = [row(line) for line in lines if line["kind"] != "header"]
    return pa.Table.from_pylist(rows, EVENT.arrow).select(frames.COLUMNS)


def shortened(events: pa.Table, part_rows: int) -> pa.Table:
    heartbeats = Heartbeats()
    parts = (events.slice(start, part_rows) for start in range(0, len(events), part_rows))
    return pa.concat_tables(map(heartbeats.shortened, parts))


def rows(events: pa.Table) -> dict[str, Counter[str]]:
    tables: dict[str, Counter[str]] = defaultdict(Counter)
    for path, each in fold("t", list(trace_lines(events))):
        tables[path].update(map(str, each))
    return tables


def heartbeat_counts(events: pa.Table) -> list[int]:
    lines = trace_lines(events)
    return [line.get("count", 1) for line in lines if (line["kind"], line.get("api")) == ("request", "Heartbeat")]


@pytest.mark.parametrize("name", TRACES_TOLD)
def test_the_fold_without_regular_heartbeats_equals_the_fold_with_all(name: str) -> None:
    events = table(TRACES_TOLD[name])
    expected = rows(events)
    for part_rows in (len(events), 40, 3):
        assert rows(shortened(events, part_rows)) == expected, f"in parts of {part_rows} lines"


def test_regular_heartbeats_are_left_out_and_counted() -> None:
    events = table(told())
    counts = heartbeat_counts(shortened(events, len(events)))
    assert sum(counts) == len(heartbeat_counts(events))
    assert len(counts) < sum(counts)
    assert max(counts) == 14  # of 10 and 5 without the first; neither b nor the commit ends a run of a


def ruled(tale: Tale) -> None:
    tale.beat("a")
    tale.lines[-1]["rule_id"] = "delay"


BREAKS: dict[str, Callable[[Tale], object]] = {
    "another request of the connection": lambda tale: tale.fetches("a"),
    "a change of the group": lambda tale: tale.state(STABLE, STABLE, 1),
    "a request to join": lambda tale: tale.joins("b"),
    "a node that stops": lambda tale: tale.line("node", of_group=False, change="stopped"),
    "a refused commit": lambda tale: tale.commits("a", 1, 0, error="UNKNOWN_MEMBER_ID"),
    "a refused heartbeat": lambda tale: tale.beat("a", error="UNKNOWN_SERVER_ERROR"),
    "a heartbeat that a rule concerns": ruled,
    "a heartbeat without a response": lambda tale: tale.asks("Heartbeat", "a", member_id="a", generation=1),
}


@pytest.mark.parametrize("between", BREAKS)
def test_a_run_of_heartbeats_ends_with(between: str) -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    beats(tale, 5, 1500, "a")
    before = tale.seq
    BREAKS[between](tale)
    after = tale.seq + 1
    beats(tale, 5, 1500, "a")
    events = table(tale.lines)
    kept = {*shortened(events, len(events))["seq"].to_pylist()}
    assert {*range(before - 1, after + 1)} <= kept
    assert len(kept) < len(events)


def test_a_run_of_heartbeats_goes_on_after_a_successful_commit() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    for _ in range(5):
        beats(tale, 2, 1500, "a")
        tale.commits("a", 1, 0)
    events = table(tale.lines)
    kept = shortened(events, len(events))
    assert heartbeat_counts(kept) == [1, 9]
    assert kept["api"].to_pylist().count("OffsetCommit") == 10


def test_heartbeats_of_each_generation_have_a_run() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    for _ in range(5):
        tale.beat("a")
        tale.beat("a", generation=0)  # late, from before
        tale.passes(1500)
    events = table(tale.lines)
    assert heartbeat_counts(shortened(events, len(events))) == [1, 1, 4, 4]


def test_heartbeats_that_stand_for_others_are_left_out_with_them() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    beats(tale, 20, 1500, "a")
    events = table(tale.lines)
    twice = shortened(shortened(events, 12), len(events))
    assert sum(heartbeat_counts(twice)) == 20
    assert len(heartbeat_counts(twice)) < len(heartbeat_counts(shortened(events, 12))) < 20


def test_all_heartbeats_remain_of_groups_that_moved() -> None:
    events = table(TRACES_TOLD["moved"])
    assert shortened(events, len(events)).equals(events)


def test_the_memory_of_a_stable_group_does_not_grow_with_its_heartbeats() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    beats(tale, 1_000, 1500, "a")
    events = table(tale.lines)
    assert len(shortened(events, 500)) < len(events) / 50


@pytest.mark.parametrize("session_ms", [None, "6000", 10**400, [6000]], ids=["none", "text", "huge", "list"])
def test_all_heartbeats_remain_of_a_group_without_a_valid_session_timeout(session_ms: object) -> None:
    events = table(beating_with(session_ms))
    assert shortened(events, len(events)).equals(events)


@pytest.mark.parametrize("session_ms", ["6000", 10**400, [6000]], ids=["text", "huge", "list"])
def test_an_impossible_session_timeout_counts_as_none(session_ms: object) -> None:
    assert rows(table(beating_with(session_ms))) == rows(table(beating_with(None)))


def beating_with(session_ms: object) -> list[Line]:
    tale = Tale()
    tale.forms({"a": [0]})
    beats(tale, 5, 1500, "a")
    for line in tale.lines:
        if "session_timeout_ms" in line.get("body", {}):
            line["body"]["session_timeout_ms"] = session_ms
    return tale.lines
