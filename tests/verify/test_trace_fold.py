"""The fold on lists: groups of one trace that share clients, connections, and nodes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from scenes.trace_tales import EMPTY, STABLE, Tale

from koordinator import Simulation
from koordinator.pipeline.fold.trace_fold import fold

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Line


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
    assert not folded(tale.lines)


def test_fetches_belong_to_the_member_with_that_client_id() -> None:
    gaps = folded(moved("one", leaves=True).lines)["gold/partition_gap"]
    assert [gap["last_fetched"] for gap in gaps if gap["rebalance_no"] == 2] == [9]


def test_fetches_of_a_client_id_belong_to_no_member_while_two_groups_use_it() -> None:
    shared = folded(both(moved("one"), moved("two")))["gold/partition_gap"]
    found = {(gap["group_id"], gap["last_fetched"]) for gap in shared if gap["rebalance_no"] == 2}
    assert found == {("one", 9), ("two", None)}
    in_turn = folded(both(moved("one", leaves=True), moved("two")))["gold/partition_gap"]
    assert [gap["last_fetched"] for gap in in_turn if gap["rebalance_no"] == 2] == [9, 9]


def test_members_stays_arrivals_and_commits_have_the_user_of_their_requests() -> None:
    tale = Tale()
    tale.forms({"a": [0], "b": [1]})
    tale.commits("a", 1, 0)
    tale.commits("b", 1, 1)
    lines = [line | {"principal": "User:alice"} if line.get("client_id") == "a" else line for line in tale.lines]
    rows = folded(lines)
    for path in ("silver/member", "silver/member_span", "silver/arrival", "gold/member_downtime", "gold/commit"):
        users = {row["member"]: row["principal"] for row in rows[path]}
        assert users == {"a": "User:alice", "b": None}, path


def test_a_member_has_the_user_of_its_first_authenticated_request() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    for user in (None, "User:alice", "User:bob"):
        tale.call("Heartbeat", "a", member_id="a", generation=1, principal=user)
    (member,) = folded(tale.lines)["silver/member"]
    assert member["principal"] == "User:alice"


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


def stays(tale: Tale, *more: Line) -> list[tuple[object, ...]]:
    rows = folded([*tale.lines, *more])["silver/member_span"]
    names = ("member_id", "member", "joined_seq", "left_seq", "end_reason")
    return sorted((tuple(row.get(name) for name in names) for row in rows), key=lambda row: row[2])


OLD, NEW = (f"one-{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "12")


def bounced() -> Tale:
    """Tell of a static member that is replaced, as a broker log does: without requests, and without the new id."""
    tale = Tale()
    tale.member("added", OLD, "member_join", "one")
    tale.state(EMPTY, STABLE, 1)
    tale.member("replaced", OLD, "fenced", "one")
    return tale


def test_a_static_member_stays_after_a_bounce() -> None:
    tale = bounced()
    assert stays(tale) == [(OLD, "one", 1, 3, "replaced"), (None, "one", 3, None, None)]
    tale.member("added", "two-1", "member_join")
    tale.member("removed", NEW, "session_expired")
    assert [row for row in stays(tale) if row[1] == "one"] == [
        (OLD, "one", 1, 3, "replaced"),
        (NEW, "one", 3, 5, "session_expired"),
    ]
    assert [row["new_member"] for row in folded(tale.lines)["gold/fencing"]] == [NEW]


def test_a_member_that_a_coordinator_loads_has_a_stay() -> None:
    tale = Tale()
    tale.member("loaded", "a", "loaded")
    tale.member("removed", "a", "session_expired")
    assert stays(tale) == [("a", "a", 1, 2, "session_expired")]


def watched(until_ms: int) -> Line:
    return {"kind": "watched", "seq": 2**62, "wall_ts": until_ms * 1000, "group_ts_us": until_ms * 1000}


def test_the_state_of_a_group_lasts_until_the_end_of_its_log() -> None:
    tale = Tale()
    tale.state(EMPTY, STABLE, 1)
    hours_ms = 1_000_000 + 12 * 3_600_000
    (row,) = folded([*tale.lines, watched(hours_ms)])["gold/state_time"]
    assert (row["state"], row["ms"]) == (STABLE, 12 * 3_600_000)
    tale.passes(5)
    tale.state(STABLE, "Dead", 1, "unloaded")
    found = {row["state"]: row["ms"] for row in folded([*tale.lines, watched(hours_ms)])["gold/state_time"]}
    assert found == {STABLE: 5, "Dead": 0}


def test_every_transaction_is_a_row_with_its_outcome_and_cause() -> None:
    with Simulation(topics={"in": 1, "out": 2}) as cluster:
        producer = cluster.create_producer("p").init()
        producer.produce("out", "a", partition=1).send_offsets("svc", {("in", 0): 3}).commit()
        producer.produce("out", "b").send_offsets("svc", {("in", 7): 1})
        cluster.transaction("p").expire()
        cluster.create_producer("q").init().produce("out", "c")
        lines = cluster.events()
    rows = folded(lines)
    found = [(row["transactional_id"], row["outcome"], row.get("cause")) for row in rows["gold/transaction"]]
    assert found == [("p", "committed", "committed"), ("p", "aborted", "timed_out"), ("q", "open", None)]
    first, *_, last = rows["gold/transaction"]
    assert (first["partitions"], first["n_partitions"], first["groups"], first["n_offsets"]) == (
        {"out": [1]},
        1,
        ["svc"],
        1,
    )
    assert (first["total_ms"], first["decided_ms"], first["markers_ms"]) == (0, 0, 0)
    assert (last.get("end_seq"), last["client_id"], last["n_offsets"]) == (None, "q", 0)
    assert {row["check_id"]: row["status"] for row in rows["mart/verdict"] if "group_id" not in row} == {
        "T01": "pass",
        "T02": "not_applicable",
        "T03": "pass",
    }


def test_a_consumer_group_has_spans_assignments_rebalances_and_gaps() -> None:
    config = {"group.consumer.heartbeat.interval.ms": 5000}
    with Simulation(topics={"t": 4}, config=config) as cluster:
        group = cluster.group("g")
        first = group.create_puppet("a", ["uniform"], group_protocol="consumer", behaviour="manual").join().sync()
        group.create_puppet("b", group_protocol="consumer").join()
        first.heartbeat()
        cluster.pass_time(3)
        first.commit({("t", 3): 7}).sync()
        group.wait_stable(members=2)
        lines = cluster.events()
    rows = folded(lines)
    labels = [row["member_id"] for row in rows["silver/member_span"]]
    spans = [
        (row["client_id"], row["protocol_type"], row["protocols"], row["topics"]) for row in rows["silver/member_span"]
    ]
    assert spans == [("a", "consumer", ["uniform"], ["t"]), ("b", "consumer", None, ["t"])]
    assert [row["type"] for row in rows["silver/group"]] == ["consumer"]
    targets = {(row["generation"], row["member_id"], row["partition"]) for row in rows["silver/assignment"]}
    assert targets == {(2, labels[0], each) for each in range(4)} | {(3, labels[each // 2], each) for each in range(4)}
    second = rows["gold/rebalance"][1]
    assert (second["type"], second["mode"], second["protocol"], second["outcome"]) == (
        *("consumer", "cooperative", "uniform", "completed"),
    )
    assert (second["members_before"], second["members_after"], second["partitions_moved"]) == (1, 2, 2)
    # the commit has an epoch behind that of the group
    assert [row["is_zombie"] for row in rows["gold/commit"]] == [False]
    moved = [row for row in rows["gold/partition_gap"] if row["rebalance_no"] == 2]
    gaps = [(row["partition"], row["old_member"], row["new_member"]) for row in moved]
    assert gaps == [(2, *labels), (3, *labels)]
    # the next heartbeat of the new owner, 200 ms after the acknowledgement at the latest
    assert all(0 <= row["gap_ms"] <= 200 for row in moved)
    failed = {row["check_id"] for row in rows["mart/verdict"] if row["status"] == "fail"}
    assert failed == set()
