"""The rebalances in the trace of a group: cause, generations, straggler, outcome."""

from __future__ import annotations

import pytest
from scenes.trace_tales import COMPLETING, EMPTY, PREPARING, STABLE, Tale

from koordinator.emulator.trace.vocabulary import sub_cause
from koordinator.emulator.verify.rebalances import assignments, rebalances


@pytest.fixture
def tale() -> Tale:
    return Tale()


def test_one_that_completes(tale: Tale) -> None:
    joins = {"a": tale.joins("a")}
    tale.state(EMPTY, PREPARING, 0, "member_join", member_id="a", client_reason="the consumer is being closed")
    tale.passes(30)
    joins["b"] = tale.joins("b", instance="one")
    tale.passes(5)
    tale.completes(joins, {"a": [0], "b": [1]})
    (found,) = rebalances(tale.trace)
    assert (found.cause, found.trigger, found.sub_cause) == ("member_join", "a", "closed")
    assert (found.generation_before, found.generation, found.outcome) == (0, 1, "completed")
    assert (found.members, found.join_ms, found.sync_ms) == (("a", "one"), 35, 0)
    assert (found.straggler, found.straggler_wait_ms) == ("one", 30)
    assert found.start_seq < (found.join_seq or 0) < (found.end_seq or 0)


def test_a_single_waiter_does_not_wait(tale: Tale) -> None:
    tale.forms({"a": [0]})
    (found,) = rebalances(tale.trace)
    assert (found.straggler, found.straggler_wait_ms) == (None, None)


def test_a_late_member_is_the_straggler(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    joins = {"a": tale.joins("a")}
    tale.state(STABLE, PREPARING, 1, "leader_rejoin", member_id="a")
    tale.jumps(30_000)
    tale.member("removed", "b", "join_timeout")
    tale.completes(joins, {"a": [0]})
    found = rebalances(tale.trace)[-1]
    assert (found.timed_out, found.straggler, found.straggler_wait_ms) == (("b",), "b", 30_000)
    assert found.members == ("a",)


def test_one_that_another_supersedes(tale: Tale) -> None:
    asked = tale.joins("a")
    tale.state(EMPTY, PREPARING, 0, "member_join", member_id="a")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(asked, generation=1, body={"protocol": "range", "leader": "a", "members": ["a"]})
    tale._generation = 1
    tale.forms({"b": [1], "a": [0]}, before=COMPLETING)
    first, second = rebalances(tale.trace)
    assert (first.outcome, first.generation, second.outcome, second.generation) == ("superseded", 1, "completed", 2)
    assert first.end_seq == second.start_seq


def test_rebalances_that_empty_the_group_and_that_move_partitions(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.state(STABLE, PREPARING, 1, "member_leave", member_id="a")
    tale.state(PREPARING, EMPTY, 2, "emptied")
    tale.joins("a")
    tale.state(EMPTY, PREPARING, 2, "member_join")
    assert [each.outcome for each in rebalances(tale.trace)] == ["completed", "emptied", "open"]
    tale.state(PREPARING, "Dead", 2, "unloaded")
    _, emptied, moved = rebalances(tale.trace)
    assert (emptied.generation, emptied.members, moved.generation, moved.outcome) == (2, (), None, "gone")
    assert str(moved) == f"#{moved.start_seq} member_join, generation 2, gone"


def test_other_groups_are_no_part_of_it(tale: Tale) -> None:
    tale.forms({"a": [0]})
    other = Tale("other")
    other.lines = tale.lines
    assert rebalances(other.trace) == []


def test_assignments_by_generation(tale: Tale) -> None:
    tale.forms({"a": [0, 1], "b": [2]}, instances={"b": "one"})
    tale.forms({"a": [0]}, before=STABLE)
    # from a follower, or too late
    tale.call(
        "SyncGroup",
        "b",
        "ILLEGAL_GENERATION",
        member_id="b",
        generation=3,
        body={"assignments": {"b": {"t": [0, 1, 2]}}},
    )
    assert [(sync.generation, held) for sync, held in assignments(tale.trace)] == [
        (1, {"a": {"t": [0, 1]}, "one": {"t": [2]}}),
        (2, {"a": {"t": [0]}}),
    ]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (None, None),
        ("", None),
        ("consumer poll timeout has expired.", "poll_timeout"),
        ("need to revoke partitions and re-join", "revoke_and_rejoin"),
        ("rebalance failed due to MemberIdRequiredException", "member_id_required"),
        ("need to re-join with the given member-id: a", "member_id_required"),
        ("rebalance failed due to UnknownMemberIdException", "failed"),
        ("encountered UNKNOWN_MEMBER_ID from HEARTBEAT response", "failed"),
        ("group is already rebalancing", "already_rebalancing"),
        ("cached metadata has changed from (version3: {}) at the beginning of the rebalance", "metadata_changed"),
        ("the consumer unsubscribed from all topics", "unsubscribed"),
        ("the consumer is being closed", "closed"),
        ("rebalance enforced by user", "enforced"),
        ("because I like to", "other"),
    ],
)
def test_the_kinds_of_reasons_clients_give(reason: str | None, kind: str | None) -> None:
    assert sub_cause(reason) == kind
