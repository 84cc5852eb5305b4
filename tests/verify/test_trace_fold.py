"""The fold on lists: groups of one trace that share clients, connections, and nodes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from scenes.trace_tales import STABLE, Tale

from koordinator.pipeline.fold.trace_fold import fold

if TYPE_CHECKING:
    from koordinator.emulator.verify.group_trace import Line


def folded(lines: list[Line]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path, each in fold("t", lines):
        rows[path].extend(each)
    return rows


def both(one: Tale, other: Tale) -> list[Line]:
    """Return the lines of two groups as one trace, the second after the first."""
    return one.lines + [line | {"seq": line["seq"] + one.seq} for line in other.lines]


def fetches(tale: Tale, client: str, upto: int) -> None:
    request = tale.asks("Fetch", client, of_group=False)
    tale.answers(request, body={"fetched": [["t", 0, 0, upto]]})


def moved(group_id: str, *, leaves: bool = False) -> Tale:
    """Tell of a partition that a fetched, and then b owned."""
    tale = Tale(group_id)
    tale.forms({"a": [0]})
    fetches(tale, "a", 9)
    tale.forms({"b": [0]}, before=STABLE)
    for name in ("a", "b") if leaves else ():
        tale.member("removed", name, "member_leave")
    return tale


def test_every_table_has_rows_of_every_group() -> None:
    rows = folded(both(moved("one"), moved("two")))
    tables = ("silver/round", "silver/arrival", "gold/rebalance", "gold/partition_gap", "mart/verdict")
    for path in tables:
        assert {row["group_id"] for row in rows[path]} == {"one", "two"}, path


def test_a_group_without_events_of_its_own_has_no_rows() -> None:
    tale = Tale()
    tale.line("conn", of_group=False, change="opened", conn_id=1)
    assert folded(tale.lines) == {}


def test_fetches_belong_to_the_member_with_that_client_id() -> None:
    gaps = folded(moved("one", leaves=True).lines)["gold/partition_gap"]
    assert [gap["last_fetched"] for gap in gaps if gap["rebalance_no"] == 2] == [9]


def test_fetches_of_a_client_id_that_two_groups_use_at_the_same_time_belong_to_none() -> None:
    shared = folded(both(moved("one"), moved("two")))["gold/partition_gap"]
    assert {gap["last_fetched"] for gap in shared} == {None}
    in_turn = folded(both(moved("one", leaves=True), moved("two")))["gold/partition_gap"]
    assert [gap["last_fetched"] for gap in in_turn if gap["rebalance_no"] == 2] == [9, 9]


def test_a_request_read_before_the_response_to_another_groups_request_fails_s10() -> None:
    one, other = Tale("one"), Tale("two")
    one.asks("OffsetFetch", "admin")
    other.call("OffsetFetch", "admin")
    verdicts = folded(both(one, other))["mart/verdict"]
    status = {(row["group_id"], row["check_id"]): row["status"] for row in verdicts}
    assert (status["one", "S10"], status["two", "S10"]) == ("fail", "pass")


def test_a_heartbeat_that_stands_for_others_counts_for_all_of_them() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(30_000)  # ten others, left out
    request = tale.asks("Heartbeat", "a", member_id="a", generation=1, count=11)
    tale.answers(request)
    found = {row["check_id"]: row for row in folded(tale.lines)["mart/verdict"]}
    assert (found["C04"]["status"], found["C04"]["n_evidence"]) == ("pass", 12)
    assert (found["S04"]["status"], found["S04"]["n_evidence"]) == ("pass", 13)
