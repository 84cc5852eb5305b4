"""S01 to S10: what a coordinator may not do, told by lines written by hand; and traces of one that does none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from scenes.trace_tales import COMPLETING, EMPTY, PREPARING, SESSION_MS, STABLE, Tale
from spark.event_frames import verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

TRACES = Path(__file__).parent.parent / "pages" / "traces"


def a_generation_is_left_out(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale._generation = 4
    tale.state(STABLE, PREPARING, 1, "metadata_change")
    tale.completes({"a": tale.joins("a")}, {"a": [0]})


def two_are_told_that_they_lead(tale: Tale) -> None:
    joins = {"a": tale.joins("a"), "b": tale.joins("b")}
    tale.state(PREPARING, COMPLETING, 1, "joined")
    for name, asked in joins.items():
        told = {"protocol": "range", "leader": name, "members": ["a", "b"] if name == "a" else []}
        tale.answers(asked, generation=1, body=told)


def a_stranger_leads(tale: Tale) -> None:
    asked = tale.joins("a")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(asked, generation=1, body={"protocol": "range", "leader": "nobody", "members": []})


def a_follower_is_told_of_the_members(tale: Tale) -> None:
    joins = {"a": tale.joins("a"), "b": tale.joins("b")}
    tale.state(PREPARING, COMPLETING, 1, "joined")
    for asked in joins.values():
        told = {"protocol": "range", "leader": "a", "members": ["a", "b"]}
        tale.answers(asked, generation=1, body=told)


def an_old_generation_is_taken(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.beat("a", 1)


def the_right_generation_is_refused(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", 1, error="ILLEGAL_GENERATION")


def somebody_who_is_gone_is_taken(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "session_expired")
    tale.beat("a", 1)


def a_wrong_generation_comes_before_an_unknown_member(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "session_expired")
    tale.beat("a", 7, error="ILLEGAL_GENERATION")


def a_member_is_unknown(tale: Tale) -> None:
    tale.member("added", "a", "member_join")
    tale.forms({"a": [0]})
    tale.beat("a", 1, error="UNKNOWN_MEMBER_ID")


def one_without_an_id_is_let_in(tale: Tale) -> None:
    asked = tale.asks("JoinGroup", "a")
    tale.answers(asked, member_id="a-1", generation=1)


def one_with_an_id_is_sent_off_again(tale: Tale) -> None:
    tale.call("JoinGroup", "a", "MEMBER_ID_REQUIRED", member_id="a-1")


def silent(tale: Tale, ms: float) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(ms)
    tale.member("removed", "a", "session_expired")


def one_is_removed_too_soon(tale: Tale) -> None:
    silent(tale, SESSION_MS - 1)


def one_is_removed_too_late(tale: Tale) -> None:
    silent(tale, SESSION_MS + 1001)


def full(tale: Tale, more: int) -> None:
    tale.member("added", "a", "member_join")
    tale.member("added", "b", "member_join")
    tale.forms({"a": [0], "b": [1]})
    tale.call("JoinGroup", "c", "GROUP_MAX_SIZE_REACHED", member_id="c")
    for number in range(more):
        tale.member("added", f"d-{number}", "member_join")
    tale.state(STABLE, PREPARING, 1, "member_join")
    tale.state(PREPARING, COMPLETING, 2, "joined")


def there_is_one_too_many(tale: Tale) -> None:
    full(tale, 1)


def back(tale: Tale, *, rebalances: bool) -> None:
    tale.forms({"one-1": [0]}, instances={"one-1": "one"})
    asked = tale.asks("JoinGroup", "one", instance_id="one", body={"protocols": ["range"]})
    tale.member("replaced", "one-1", "fenced", "one")
    if rebalances:
        tale.state(STABLE, PREPARING, 1, "metadata_change", member_id="one-2")
    told = {"protocol": "range", "leader": "one-1", "members": []}
    tale.answers(asked, member_id="one-2", generation=1, body=told)


def a_static_member_that_is_back_rebalances(tale: Tale) -> None:
    back(tale, rebalances=True)


def the_old_member_is_not_fenced(tale: Tale) -> None:
    back(tale, rebalances=False)
    tale.call("Heartbeat", "old", member_id="one-1", instance_id="one", generation=1)


def a_protocol_nobody_offers(tale: Tale) -> None:
    tale.forms({"a": [0]}, protocol="sticky")


def a_request_is_passed_over(tale: Tale) -> None:
    tale.asks("Heartbeat", "a", member_id="a", generation=1)
    tale.beat("a", 1)


def two_are_in_hand(tale: Tale) -> None:
    # all that is asked is answered, in its order, and one too late; as a node that has no number does it
    one = tale.asks("Heartbeat", "a", member_id="a", generation=1, node=None)
    two = tale.asks("Heartbeat", "a", member_id="a", generation=1, node=None)
    tale.answers(one, node=None)
    tale.answers(two, node=None)
    tale.beat("b", 1)


def an_answer_comes_twice(tale: Tale) -> None:
    asked = tale.asks("Heartbeat", "a", member_id="a", generation=1)
    tale.answers(asked)
    tale.answers(asked)


WRONG: tuple[tuple[Callable[[Tale], None], str, str], ...] = (
    (a_generation_is_left_out, "S01", "after generation 1 came 5"),
    (two_are_told_that_they_lead, "S02", "generation 1 has the leaders a and b"),
    (a_stranger_leads, "S02", "generation 1 is led by nobody, which is not in it"),
    (a_follower_is_told_of_the_members, "S03", "it is told of the members, and a leads"),
    (an_old_generation_is_taken, "S04", "the group was in another generation"),
    (the_right_generation_is_refused, "S04", "it is the group's"),
    (somebody_who_is_gone_is_taken, "S04", "it was no member"),
    (a_wrong_generation_comes_before_an_unknown_member, "S04", "it was no member"),
    (a_member_is_unknown, "S04", "it was a member"),
    (one_without_an_id_is_let_in, "S05", "without an id"),
    (one_with_an_id_is_sent_off_again, "S05", "it needs no id, or has one"),
    (one_is_removed_too_soon, "S06", "a was removed 5.999 s after its last request; its session timeout is 6 s"),
    (one_is_removed_too_late, "S06", "a was removed 7.001 s after its last request; its session timeout is 6 s"),
    (there_is_one_too_many, "S07", "a generation of 3 members, and with 2 somebody was refused"),
    (a_static_member_that_is_back_rebalances, "S08", "a rebalance began, metadata_change"),
    (the_old_member_is_not_fenced, "S08", "another has its place since #"),
    (a_protocol_nobody_offers, "S09", "sticky was chosen, it offers range"),
    (a_request_is_passed_over, "S10", "Heartbeat was not answered before #2 was read"),
    (two_are_in_hand, "S10", "#1 Heartbeat was not answered before #2 was read"),
    (an_answer_comes_twice, "S10", "answers a Heartbeat that does not wait for an answer"),
)


def all_is_well(tale: Tale) -> None:
    tale.forms({"a": [0]}, before=EMPTY)
    tale.forms({"a": [0], "b": [1]}, before=STABLE)
    tale.beat("a")
    tale.beat("b", 1, error="ILLEGAL_GENERATION")
    tale.beat("a")


def one_is_removed_in_time(tale: Tale) -> None:
    silent(tale, SESSION_MS)


def nobody_is_too_many(tale: Tale) -> None:
    full(tale, 0)


def a_static_member_is_back(tale: Tale) -> None:
    back(tale, rebalances=False)
    tale.call("Heartbeat", "old", "FENCED_INSTANCE_ID", member_id="one-1", instance_id="one", generation=1)


def a_rule_answers(tale: Tale) -> None:
    tale.forms({"a": [0]})
    asked = tale.asks("Heartbeat", "a", member_id="a", generation=1)
    tale.answers(asked, "ILLEGAL_GENERATION", rule_id="r1", synthetic=True)


RIGHT: tuple[tuple[Callable[[Tale], None], set[str]], ...] = (
    (all_is_well, {"S01", "S02", "S03", "S04", "S09", "S10"}),
    (one_is_removed_in_time, {"S06"}),
    (nobody_is_too_many, {"S07"}),
    (a_static_member_is_back, {"S08"}),
    (a_rule_answers, set()),
)


def test_a_coordinator_is_found_out_and_one_that_does_as_kafka_does_passes(spark: SparkSession) -> None:
    told = {}
    for tell in (*(tell for tell, _, _ in WRONG), *(tell for tell, _ in RIGHT)):
        tale = Tale()
        tell(tale)
        told[tell.__name__] = tale.lines
    told |= {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in TRACES.glob("*.jsonl")}
    rows = [row for row in verdicts(spark, told).collect() if row.check_id.startswith("S")]
    found = {(row.trace_id, row.check_id): row for row in rows}
    for tell, check, message in WRONG:
        row = found[tell.__name__, check]
        assert (row.status, row.subject) == ("fail", "coordinator"), tell.__name__
        assert message in row.message
    for tell, checks in RIGHT:
        for check in checks:
            assert found[tell.__name__, check].status == "pass", (tell.__name__, check)
    innocent = {tell.__name__ for tell, _ in RIGHT} | {path.stem for path in TRACES.glob("*.jsonl")}
    assert [row for row in rows if row.trace_id in innocent and row.status == "fail"] == []
