"""The checks of transactions pass for an emulated cluster, and each fails for a trace with its violation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator import Simulation
from koordinator.emulator.verify.conformance import transaction_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def lines() -> Lines:
    """Return the trace of a commit, an abort, and a fenced producer; a read_committed consumer fetches everything."""
    with Simulation(topics={"in": 1, "out": 1}) as cluster:
        producer = cluster.create_producer("p").init()
        producer.produce("out", "a").send_offsets("svc", {("in", 0): 1}).commit()
        producer.produce("out", "b").send_offsets("svc", {("in", 0): 2}).abort()
        cluster.create_producer("q", "p").init().produce("out", "c").commit()
        assert producer.produce("out", "zombie").error is not None
        cluster.assert_transactions_isolated()
        found = cluster.events()
    # as a broker answers a fetch of everything
    call = {"api": "Fetch", "conn_id": 99, "correlation_id": 1, "node": 1}
    producers = [line["body"]["producer_id"] for line in found if line["kind"] == "transaction"]
    body = {"fetched": [["out", 0, 0, 6]], "aborted": [["out", 0, producers[0], 2]]}
    return [
        *found,
        {"seq": 10_001, "kind": "request", **call, "body": {"isolation_level": "read_committed"}},
        {"seq": 10_002, "kind": "response", **call, "body": body},
    ]


def statuses(lines: Lines) -> dict[str, str]:
    return {verdict.id: verdict.status for verdict in transaction_verdicts(lines)}


def test_an_emulated_cluster_passes(lines: Lines) -> None:
    assert statuses(lines) == {"T01": "pass", "T02": "pass", "T03": "pass"}


def without(lines: Lines, leave_out: Callable[[dict[str, Any]], bool]) -> Lines:
    return [line for line in lines if not leave_out(line)]


def changed(lines: Lines, pick: Callable[[dict[str, Any]], bool], **columns: Any) -> Lines:
    return [{**line, **columns} if pick(line) else line for line in lines]


def is_offset_commit(line: dict[str, Any]) -> bool:
    return line["kind"] == "request" and line.get("api") == "TxnOffsetCommit"


def is_fetch(line: dict[str, Any]) -> bool:
    return line["kind"] == "response" and line.get("api") == "Fetch"


def is_first_marker(line: dict[str, Any]) -> bool:
    return line["kind"] == "request" and line.get("api") == "WriteTxnMarkers"


def is_zombie(line: dict[str, Any]) -> bool:
    return line["kind"] == "response" and line.get("api") == "Produce" and bool(line.get("error"))


def test_an_offset_that_was_in_no_transaction_is_found(lines: Lines) -> None:
    assert statuses(without(lines, is_offset_commit))["T01"] == "fail"


def test_an_offset_committed_by_an_aborted_transaction_is_found(lines: Lines) -> None:
    broken = changed(lines, lambda line: line.get("cause") == "transaction_aborted", cause="transaction_committed")
    broken = [
        {**line, "body": {**line["body"], "committed": line["body"].get("committed") or line["body"].get("dropped")}}
        if line["kind"] == "offsets"
        else line
        for line in broken
    ]
    assert statuses(broken)["T01"] == "fail"


def test_an_offset_visible_before_the_decision_is_found(lines: Lines) -> None:
    broken = without(lines, lambda line: line.get("state_to") in {"PrepareCommit", "CompleteCommit"})
    assert statuses(broken)["T01"] == "fail"


def test_records_delivered_before_their_marker_are_found(lines: Lines) -> None:
    assert statuses(without(lines, is_first_marker))["T02"] == "fail"


def test_aborted_records_that_the_client_cannot_know_are_found(lines: Lines) -> None:
    assert statuses(changed(lines, is_fetch, body={"fetched": [["out", 0, 0, 6]], "aborted": []}))["T02"] == "fail"


def test_a_successful_write_of_a_fenced_producer_is_found(lines: Lines) -> None:
    (zombie,) = filter(is_zombie, lines)
    body = {**(zombie.get("body") or {}), "appended": [["out", 0, 6]]}
    assert statuses(changed(lines, is_zombie, error=None, body=body))["T03"] == "fail"


def test_a_response_that_a_rule_changed_is_not_judged(lines: Lines) -> None:
    (zombie,) = filter(is_zombie, lines)
    body = {**(zombie.get("body") or {}), "appended": [["out", 0, 6]]}
    assert statuses(changed(lines, is_zombie, error=None, body=body, rule_id="rule-1"))["T03"] == "pass"


def test_a_trace_without_its_beginning_is_neither_a_violation_nor_a_proof(lines: Lines) -> None:
    dropped = {"seq": 1, "kind": "dropped", "count": 10}
    for start in range(len(lines)):
        assert not {"fail", "pass"} & {*statuses([dropped, *lines[start:]]).values()}, start
