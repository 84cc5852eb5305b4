"""S01 to S16: forbidden behaviour of a coordinator in hand-written lines, and traces of a correct one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scenes.trace_tales import COMPLETING, EMPTY, PREPARING, SESSION_MS, STABLE, Tale

from koordinator.emulator.verify.conformance import SERVER_CHECKS
from koordinator.emulator.verify.group_trace import GroupTrace

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.emulator.verify.observations import Observations

TRACES = Path(__file__).parent.parent / "pages" / "traces"


def skipped_generation(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale._generation = 4
    tale.state(STABLE, PREPARING, 1, "metadata_change")
    tale.completes({"a": tale.joins("a")}, {"a": [0]})


def two_leaders(tale: Tale) -> None:
    joins = {"a": tale.joins("a"), "b": tale.joins("b")}
    tale.state(PREPARING, COMPLETING, 1, "joined")
    for name, request in joins.items():
        body = {"protocol": "range", "leader": name, "members": ["a", "b"] if name == "a" else []}
        tale.answers(request, generation=1, body=body)


def leader_outside_the_generation(tale: Tale) -> None:
    request = tale.joins("a")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(request, generation=1, body={"protocol": "range", "leader": "nobody", "members": []})


def member_list_for_a_follower(tale: Tale) -> None:
    joins = {"a": tale.joins("a"), "b": tale.joins("b")}
    tale.state(PREPARING, COMPLETING, 1, "joined")
    for request in joins.values():
        body = {"protocol": "range", "leader": "a", "members": ["a", "b"]}
        tale.answers(request, generation=1, body=body)


def old_generation_accepted(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.beat("a", 1)


def current_generation_refused(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", 1, error="ILLEGAL_GENERATION")


def former_member_accepted(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "session_expired")
    tale.beat("a", 1)


def generation_checked_before_member(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "session_expired")
    tale.beat("a", 7, error="ILLEGAL_GENERATION")


def member_refused_as_unknown(tale: Tale) -> None:
    tale.member("added", "a", "member_join")
    tale.forms({"a": [0]})
    tale.beat("a", 1, error="UNKNOWN_MEMBER_ID")


def join_without_an_id_accepted(tale: Tale) -> None:
    request = tale.asks("JoinGroup", "a")
    tale.answers(request, member_id="a-1", generation=1)


def id_required_twice(tale: Tale) -> None:
    tale.call("JoinGroup", "a", "MEMBER_ID_REQUIRED", member_id="a-1")


def silent(tale: Tale, ms: float) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(ms)
    tale.member("removed", "a", "session_expired")


def removed_too_soon(tale: Tale) -> None:
    silent(tale, SESSION_MS - 1)


def removed_too_late(tale: Tale) -> None:
    silent(tale, SESSION_MS + 1001)


def removed_by_a_late_emulator(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(SESSION_MS + 1001)
    tale.line("lag", of_group=False, body={"lag_ms": 500})
    tale.member("removed", "a", "session_expired")


def full(tale: Tale, more: int) -> None:
    tale.member("added", "a", "member_join")
    tale.member("added", "b", "member_join")
    tale.forms({"a": [0], "b": [1]})
    tale.call("JoinGroup", "c", "GROUP_MAX_SIZE_REACHED", member_id="c")
    for number in range(more):
        tale.member("added", f"d-{number}", "member_join")
    tale.state(STABLE, PREPARING, 1, "member_join")
    tale.state(PREPARING, COMPLETING, 2, "joined")


def one_member_too_many(tale: Tale) -> None:
    full(tale, 1)


def back(tale: Tale, *, rebalances: bool) -> None:
    tale.forms({"one-1": [0]}, instances={"one-1": "one"})
    request = tale.asks("JoinGroup", "one", instance_id="one", body={"protocols": ["range"]})
    tale.member("replaced", "one-1", "fenced", "one")
    if rebalances:
        tale.state(STABLE, PREPARING, 1, "metadata_change", member_id="one-2")
    body = {"protocol": "range", "leader": "one-1", "members": []}
    tale.answers(request, member_id="one-2", generation=1, body=body)


def static_rejoin_with_a_rebalance(tale: Tale) -> None:
    back(tale, rebalances=True)


def old_member_not_fenced(tale: Tale) -> None:
    back(tale, rebalances=False)
    tale.call("Heartbeat", "old", member_id="one-1", instance_id="one", generation=1)


def protocol_without_support(tale: Tale) -> None:
    tale.forms({"a": [0]}, protocol="sticky")


def request_skipped(tale: Tale) -> None:
    tale.asks("Heartbeat", "a", member_id="a", generation=1)
    tale.beat("a", 1)


def two_requests_in_flight(tale: Tale) -> None:
    # every request gets a response in order, one of them late, from a node without a number
    one = tale.asks("Heartbeat", "a", member_id="a", generation=1, node=None)
    two = tale.asks("Heartbeat", "a", member_id="a", generation=1, node=None)
    tale.answers(one, node=None)
    tale.answers(two, node=None)
    tale.beat("b", 1)


def two_responses(tale: Tale) -> None:
    request = tale.asks("Heartbeat", "a", member_id="a", generation=1)
    tale.answers(request)
    tale.answers(request)


def given_before_it_is_released(tale: Tale) -> None:
    tale.step("a", 2, [0, 1])
    tale.step("a", 2, [0], revoking=[1])
    tale.step("b", 3, [1])


def given_to_two(tale: Tale) -> None:
    tale.step("a", 2, [0, 1])
    tale.step("b", 3, [1])


def target_with_an_old_epoch(tale: Tale) -> None:
    for epoch in (2, 3, 3):
        tale.line("target", generation=epoch, body={"assignor": "uniform", "assignments": {}})


def member_epoch_back(tale: Tale) -> None:
    tale.step("a", 3, [0])
    tale.step("a", 2, [0])


WRONG: tuple[tuple[Callable[[Tale], None], str, str], ...] = (
    (skipped_generation, "S01", "after generation 1 came 5"),
    (two_leaders, "S02", "generation 1 has the leaders a and b"),
    (leader_outside_the_generation, "S02", "generation 1 is led by nobody, which is not in it"),
    (member_list_for_a_follower, "S03", "it is told of the members, and a leads"),
    (old_generation_accepted, "S04", "the group was in another generation"),
    (current_generation_refused, "S04", "it is the group's"),
    (former_member_accepted, "S04", "it was no member"),
    (generation_checked_before_member, "S04", "it was no member"),
    (member_refused_as_unknown, "S04", "it was a member"),
    (join_without_an_id_accepted, "S05", "without an id"),
    (id_required_twice, "S05", "it needs no id, or has one"),
    (removed_too_soon, "S06", "a was removed 5.999 s after its last request; its session timeout is 6 s"),
    (removed_too_late, "S06", "a was removed 7.001 s after its last request; its session timeout is 6 s"),
    (one_member_too_many, "S07", "a generation of 3 members, and with 2 somebody was refused"),
    (static_rejoin_with_a_rebalance, "S08", "a rebalance began, metadata_change"),
    (old_member_not_fenced, "S08", "another has its place since #"),
    (protocol_without_support, "S09", "sticky was chosen, it offers range"),
    (request_skipped, "S10", "Heartbeat was not answered before #2 was read"),
    (two_requests_in_flight, "S10", "#1 Heartbeat was not answered before #2 was read"),
    (two_responses, "S10", "answers a Heartbeat that does not wait for an answer"),
    (given_before_it_is_released, "S11", "t 1 went to b while a held it"),
    (given_to_two, "S11", "t 1 went to b while a held it"),
    (target_with_an_old_epoch, "S12", "the target of epoch 3 came after that of 3"),
    (member_epoch_back, "S12", "the epoch of a went back from 3 to 2"),
)


def correct_coordinator(tale: Tale) -> None:
    tale.forms({"a": [0]}, before=EMPTY)
    tale.forms({"a": [0], "b": [1]}, before=STABLE)
    tale.beat("a")
    tale.beat("b", 1, error="ILLEGAL_GENERATION")
    tale.beat("a")


def removed_in_time(tale: Tale) -> None:
    silent(tale, SESSION_MS)


def removed_a_session_after_its_return(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.answers(tale.joins("a"), generation=1)
    tale.passes(30)
    tale.call("SyncGroup", "a", member_id="a", generation=1)
    tale.passes(SESSION_MS - 30)
    tale.member("removed", "a", "session_expired")


def size_limit_kept(tale: Tale) -> None:
    full(tale, 0)


def static_rejoin(tale: Tale) -> None:
    back(tale, rebalances=False)
    tale.call("Heartbeat", "old", "FENCED_INSTANCE_ID", member_id="one-1", instance_id="one", generation=1)


def response_by_a_rule(tale: Tale) -> None:
    tale.forms({"a": [0]})
    request = tale.asks("Heartbeat", "a", member_id="a", generation=1)
    tale.answers(request, "ILLEGAL_GENERATION", rule_id="r1", synthetic=True)


def reconciled(tale: Tale) -> None:
    tale.step("a", 2, [0, 1])
    tale.line("target", generation=3, body={"assignor": "uniform", "assignments": {}})
    tale.state(STABLE, "Reconciling", 3, "assigned")
    tale.commits("a", 2)
    tale.step("a", 2, [0], revoking=[1])
    tale.step("a", 3, [0])
    tale.step("b", 3, [1])
    tale.member("removed", "a", "session_expired")
    tale.step("b", 4, [0, 1])
    tale.member("added", "a", "member_join")
    tale.step("a", 1, [])


def loaded_again(tale: Tale) -> None:
    tale.step("a", 3, [0])
    tale.state(STABLE, "Dead", 3, "unloaded")
    tale.step("b", 2, [0])


def topic_created_again(tale: Tale) -> None:
    tale.step("a", 2, [0])
    tale.state(STABLE, "Assigning", 2, "topic_change")
    tale.step("b", 3, [0])


def leader_without_a_connection(tale: Tale) -> None:
    tale.joins("a", instance="one", member_id=None)
    request = tale.joins("b")
    tale.member("added", "a", "member_join", instance="one")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(request, generation=1, body={"protocol": "range", "leader": "a", "members": []})


def moves(tale: Tale, *members: str) -> None:
    """Move the group to another coordinator, which loads these members."""
    tale.state(STABLE, "Dead", 1, "unloaded")
    tale.state(EMPTY, STABLE, 1, "loaded")
    for member_id in members:
        tale.member("loaded", member_id, "loaded")


def leader_loaded(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    moves(tale, "a", "b")
    tale.answers(tale.joins("b"), generation=1, body={"protocol": "range", "leader": "a", "members": []})


def removal_not_written(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "member_leave")
    moves(tale, "a")
    tale.beat("a", 0, error="ILLEGAL_GENERATION")


def removed_after_a_load(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(SESSION_MS - 1)
    moves(tale, "a")
    tale.passes(SESSION_MS)
    tale.member("removed", "a", "session_expired")


def removed_after_a_parked_join(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.joins("a")
    tale.call("Heartbeat", "other", "ILLEGAL_GENERATION", member_id="a", generation=0)
    tale.passes(2 * SESSION_MS)
    tale.member("removed", "a", "session_expired")


RIGHT: tuple[tuple[Callable[[Tale], None], set[str]], ...] = (
    (correct_coordinator, {"S01", "S02", "S03", "S04", "S09", "S10"}),
    (removed_in_time, {"S06"}),
    (removed_by_a_late_emulator, {"S06"}),
    (removed_a_session_after_its_return, {"S06"}),
    (size_limit_kept, {"S07"}),
    (static_rejoin, {"S08"}),
    (response_by_a_rule, set()),
    (reconciled, {"S11", "S12"}),
    (loaded_again, {"S11", "S12"}),
    (topic_created_again, {"S11", "S12"}),
    (leader_without_a_connection, {"S02"}),
    (leader_loaded, {"S02"}),
    (removal_not_written, {"S04"}),
    (removed_after_a_load, set()),
    (removed_after_a_parked_join, set()),
)


def judged(tell: Callable[[Tale], None], check: str) -> Observations:
    tale = Tale()
    tell(tale)
    return SERVER_CHECKS[check][1](tale.trace)


@pytest.mark.parametrize(("tell", "check", "message"), WRONG, ids=lambda value: getattr(value, "__name__", None))
def test_a_violation_fails_its_check(tell: Callable[[Tale], None], check: str, message: str) -> None:
    found = judged(tell, check)
    assert found.status == "fail"
    assert message in found.message


@pytest.mark.parametrize(("tell", "checks"), RIGHT, ids=lambda value: getattr(value, "__name__", None))
def test_a_correct_coordinator_fails_no_check(tell: Callable[[Tale], None], checks: set[str]) -> None:
    status = {check: judged(tell, check).status for check in SERVER_CHECKS}
    assert {check for check in checks if status[check] != "pass"} == set()
    assert "fail" not in status.values()


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_recorded_traces_fail_no_check(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for group_id in {line["group_id"] for line in lines if "group_id" in line}:
        trace = GroupTrace(lines, group_id)
        assert {check for check, (_, judge) in SERVER_CHECKS.items() if judge(trace).status == "fail"} == set()
