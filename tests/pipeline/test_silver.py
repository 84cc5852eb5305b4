"""Traces, runs, tests, members and assignments, from literal frames and recorded traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark.event_frames import table_of_fold
from spark.literal_frames import literal

from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.rebalances import assignments
from koordinator.pipeline.frames import rows_of, sql
from koordinator.pipeline.layers import QUERIES
from koordinator.pipeline.local_files import list_files, read_lines
from koordinator.pipeline.schema import ASSIGNMENT, EVENT, HEADER, MEMBER_SPAN, OUTCOME, RUN, TEST, TRACE
from koordinator.pipeline.silver import intake

if TYPE_CHECKING:
    from koordinator.pipeline.frames import Frame
    from koordinator.pipeline.queries import Row

TRACES = Path(__file__).parents[1] / "pages" / "traces"


def one(frame: Frame) -> Row:
    (row,) = rows_of(frame)
    return row


def events_of(name: str) -> Frame:
    files = list_files([str(TRACES / f"{name}.jsonl")]) or []
    return intake.ingest(intake.parse_lines(read_lines(files), [files[0].source_file])).event


def test_a_trace_combines_its_headers_and_events() -> None:
    event = literal(
        None,
        EVENT,
        {"trace_id": "t", "seq": 3, "wall_us": 30, "kind": "dropped", "count": 3, "source": "koordinator"},
        {"trace_id": "t", "seq": 4, "wall_us": 40, "kind": "conn", "source": "koordinator"},
    )
    header = literal(
        None,
        HEADER,
        {"trace_id": "t", "wall_us": 10, "cluster": "c", "libs": {"a": "1"}, "source": "koordinator"},
        {"trace_id": "t", "wall_us": 10, "run_id": "r", "test_id": "x", "cluster": "c", "source": "koordinator"},
    )
    found = one(sql(QUERIES["silver/trace"], TRACE, silver_event=event, silver_header=header))
    assert (found.run_id, found.test_id, found.cluster, dict(found.libs)) == ("r", "x", "c", {"a": "1"})
    assert (found.started_us, found.n_events, found.lost) == (10, 2, 3)


def test_a_trace_without_a_header_is_its_own_run() -> None:
    event = literal(None, EVENT, {"trace_id": "t", "seq": 3, "wall_us": 30, "kind": "state", "source": "server_log"})
    found = one(sql(QUERIES["silver/trace"], TRACE, silver_event=event, silver_header=literal(None, HEADER)))
    assert (found.run_id, found.test_id, found.source) == ("t", None, "server_log")
    assert (found.started_us, found.n_events, found.lost) == (30, 1, 0)


def test_a_run_consists_of_the_traces_that_name_it() -> None:
    traces = literal(
        None,
        TRACE,
        {"trace_id": "1", "run_id": "r", "test_id": "x", "started_us": 9, "n_events": 5, "commit": "abc"},
        {"trace_id": "2", "run_id": "r", "test_id": "x", "started_us": 7, "n_events": 6, "commit": "abc"},
        {"trace_id": "3", "run_id": "r", "started_us": 8, "n_events": 1},
    )
    found = one(sql(QUERIES["silver/run"], RUN, silver_trace=traces))
    assert (found.started_us, found.n_tests, found.n_traces, found.n_events) == (7, 1, 3, 12)
    assert found.commit == "abc"


def test_the_worst_outcome_of_a_test_counts() -> None:
    traces = literal(
        None,
        TRACE,
        {"trace_id": "1", "run_id": "r", "test_id": "x", "rerun": 1, "seed": 5},
        {"trace_id": "2", "run_id": "r", "test_id": "y", "rerun": 0, "seed": 6},
        {"trace_id": "3", "run_id": "r"},
    )
    outcome = literal(
        None,
        OUTCOME,
        {"trace_id": "1", "test_id": "x", "outcome": "passed", "duration_ms": 9.0, "rerun": 1, "seed": 7},
        {"trace_id": "1", "test_id": "x", "outcome": "error", "duration_ms": 8.0, "rerun": 1, "seed": 7},
    )
    rows = rows_of(sql(QUERIES["silver/test"], TEST, silver_trace=traces, silver_outcome=outcome))
    found = {row.test_id: row for row in rows}
    assert (found["x"].outcome, found["x"].duration_ms, found["x"].rerun, found["x"].seed) == ("error", 8.0, 1, 7)
    assert (found["y"].outcome, found["y"].rerun, found["y"].seed) == (None, 0, 6)
    assert set(found) == {"x", "y"}


def member(seq: int, change: str, **more: object) -> dict[str, object]:
    at = {"seq": seq, "group_us": seq * 1000, "kind": "member", "change": change}
    return {"trace_id": "t", "group_id": "g", "member_id": "m", **at, **more}


def test_a_stay_ends_with_the_removal_of_the_member() -> None:
    event = literal(
        None,
        EVENT,
        member(1, "pending"),
        member(2, "added"),
        member(3, "added"),
        member(5, "removed", cause="session_expired"),
        member(6, "added"),
    )
    found = sorted(rows_of(table_of_fold(MEMBER_SPAN, event)), key=lambda row: row.joined_seq)
    assert [(row.joined_seq, row.left_seq, row.end_reason) for row in found] == [
        (2, 5, "session_expired"),
        (6, None, None),
    ]
    assert (found[0].joined_us, found[0].left_us, found[0].membership, found[0].puppet) == (
        2000,
        5000,
        "dynamic",
        False,
    )


def test_puppets_are_recognized_by_their_events() -> None:
    event = literal(None, EVENT, member(2, "added"), {**member(3, "assigned"), "kind": "puppet", "name": "p"})
    assert one(table_of_fold(MEMBER_SPAN, event)).puppet


def test_the_stay_of_a_replacing_static_member_starts_with_its_join() -> None:
    event = events_of("static_bounce")
    spans = rows_of(table_of_fold(MEMBER_SPAN, event))
    old, new = sorted((row for row in spans if row.member == "svc-2"), key=lambda row: row.joined_seq)
    assert (old.end_reason, new.end_reason, old.membership) == ("replaced", None, "static")
    assert old.member_id != new.member_id
    assert new.joined_seq == old.left_seq - 1
    assert (new.client_software, new.session_timeout_ms, new.topics) == ("kafka-python", 6000, ["orders"])


@pytest.mark.parametrize("name", ["cooperative", "late_commit", "static_bounce"])
def test_assignments_equal_those_of_the_emulator(name: str) -> None:
    lines = [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
    expected = {
        (exchange.generation, who, topic, number)
        for exchange, held in assignments(GroupTrace(lines, "orders-svc"))
        for who, topics in held.items()
        for topic, numbers in topics.items()
        for number in numbers
    }
    event = events_of(name)
    found = rows_of(table_of_fold(ASSIGNMENT, event))
    assert {(row.generation, row.member, row.topic, row.partition) for row in found} == expected
    assert len(found) == len(expected)
