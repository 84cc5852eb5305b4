"""silver/call has every request that names a group, with the response that belongs to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from spark.event_frames import events, table_of_fold
from spark.loads import trace

from koordinator.pipeline.fold.calls import CallPairs
from koordinator.pipeline.schema import CALL

if TYPE_CHECKING:
    from collections.abc import Sequence

Line = dict[str, Any]


def request(seq: int, api: str = "Heartbeat", **more: Any) -> Line:
    line = {"kind": "request", "seq": seq, "wall_ts": seq, "api_key": 12, "api": api, "group_id": "g"}
    return line | {"node": 1, "conn_id": 1, "correlation_id": 7, "member_id": ""} | more


def response(seq: int, **more: Any) -> Line:
    return request(seq, **more) | {"kind": "response"}


def calls(*lines: Line) -> list[Line]:
    rows: list[Line] = table_of_fold(CALL, events({"t": lines})).to_pylist()
    return sorted(rows, key=lambda row: int(row["seq"]))


def answers(*lines: Line) -> list[tuple[int, int | None]]:
    return [(row["seq"], row["answered_seq"]) for row in calls(*lines)]


def test_a_response_belongs_to_the_last_request_with_its_correlation_id() -> None:
    assert answers(request(1), request(2), response(3)) == [(1, None), (2, 3)]
    assert answers(request(1), response(2), response(3)) == [(1, 2)]
    assert answers(request(1, correlation_id=7), request(2, correlation_id=8), response(3, correlation_id=7)) == [
        (1, 3),
        (2, None),
    ]


@pytest.mark.parametrize("place", ["node", "conn_id", "group_id"])
def test_a_response_belongs_to_a_request_of_its(place: str) -> None:
    other = {place: "h" if place == "group_id" else 2}
    assert answers(request(1), response(2, **other)) == [(1, None)]
    assert answers(request(1), request(2, **other), response(3)) == [(1, 3), (2, None)]


def test_events_without_a_group_are_no_calls() -> None:
    assert calls(request(1, "Fetch", group_id=None), response(2, api="Fetch", group_id=None)) == []


def test_a_call_names_the_member_that_the_response_names_first() -> None:
    (joined,) = calls(request(1, "JoinGroup"), response(2, api="JoinGroup", member_id="m", generation=3))
    assert (joined["asked_as"], joined["member_id"], joined["formed"], joined["error"]) == (None, "m", 3, "NONE")


def test_a_refused_request_has_the_error_and_no_fields_of_a_response() -> None:
    bodies = request(1, "JoinGroup", body={"session_timeout_ms": 6000, "topics": ["t"], "protocols": 7})
    refused = response(2, api="JoinGroup", error="UNKNOWN_MEMBER_ID", error_code=25, body={"leader": "m"}, generation=3)
    (row,) = calls(bodies, refused)
    assert (row["error"], row["error_code"], row["formed"], row["leader"]) == ("UNKNOWN_MEMBER_ID", 25, None, None)
    # a field of another type is null
    assert (row["session_timeout_ms"], row["topics"], row["protocols"]) == (6000, ["t"], None)


def test_a_request_without_a_response_has_no_error() -> None:
    (row,) = calls(request(1))
    assert (row["error"], row["answered_seq"], row["member_id"]) == (None, None, None)


def test_the_rule_of_a_response_counts_before_that_of_its_request() -> None:
    assert [row["rule_id"] for row in calls(request(1, rule_id="a"), response(2, rule_id="b"))] == ["b"]
    assert [row["rule_id"] for row in calls(request(1, rule_id="a"), response(2))] == ["a"]


def both(parts: Sequence[pa.Table]) -> list[Line]:
    pairs = CallPairs()
    made = [rows for each in [*map(pairs.answered, parts), pairs.unanswered()] for rows in each]
    return sorted(pa.concat_tables(made).to_pylist(), key=lambda row: int(row["seq"]))


@pytest.mark.parametrize("part_rows", [1, 7, 100])
def test_calls_do_not_depend_on_the_parts_of_a_trace(part_rows: int) -> None:
    lines = [*map(json.loads, trace("cooperative"))]
    event = events({"t": lines})
    parts = [event.slice(start, part_rows) for start in range(0, len(event), part_rows)]
    assert both(parts) == both([event])
    assert len(both(parts)) == sum(line["kind"] == "request" and "group_id" in line for line in lines) > 50
