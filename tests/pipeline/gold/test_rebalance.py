"""gold/rebalance: the columns of a rebalance. Each tale is a trace of its own, and one run computes all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.trace_tales import COMPLETING, EMPTY, PREPARING, STABLE, Tale
from spark.gold_frames import Tales, of

from koordinator.pipeline import schema
from koordinator.pipeline.fold.rebalances import STORM_GAP_MS

if TYPE_CHECKING:
    from pyspark.sql import Row

TALES = Tales()


@pytest.fixture(scope="module")
def rebalances() -> list[Row]:
    """Return the rebalances of all tales."""
    return TALES.gold().rows(schema.REBALANCE)


@TALES.told
def of_two(tale: Tale) -> None:
    joins = {"a": tale.joins("a")}
    tale.state(EMPTY, PREPARING, 0, "member_join", member_id="a", client_reason="the consumer is being closed")
    tale.passes(30)
    joins["b"] = tale.joins("b", instance="one")
    tale.passes(5)
    tale.completes(joins, {"a": [0], "b": [1]})
    tale.passes(7)
    tale.call("OffsetFetch", "a")


def test_a_rebalance_has_its_cause_straggler_and_durations(rebalances: list[Row]) -> None:
    (row,) = of(rebalances, of_two)
    assert (row.run_id, row.test_id, row.cluster, row.group_id) == ("r", "test_of_two", "c", "g")
    assert (row.cause, row.sub_cause, row.client_reason) == ("member_join", "closed", "the consumer is being closed")
    assert (row.trigger_member, row.gen_before, row.gen_after, row.outcome) == ("a", 0, 1, "completed")
    assert (row.join_ms, row.sync_ms, row.total_ms, row.resume_ms) == (35.0, 0.0, 35.0, 42.0)
    assert (row.straggler_member, row.straggler_wait_ms, row.straggler_share) == ("one", 30.0, 30 / 35)
    assert (row.members_before, row.members_after, row.n_joined, row.n_left, row.n_static) == (0, 2, 2, 0, 1)
    assert (row.membership, row.protocol, row.mode, row.storm_id) == ("mixed", "range", "eager", None)
    assert (row.t_sync_done_us - row.t_start_us, row.n_timed_out) == (35_000, 0)


@TALES.told
def of_one(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.passes(STORM_GAP_MS + 1)
    tale.forms({"a": [0]}, before=STABLE)
    tale.passes(STORM_GAP_MS)
    tale.forms({"a": [0]}, before=STABLE)


def test_a_single_member_has_no_straggler(rebalances: list[Row]) -> None:
    row = of(rebalances, of_one)[0]
    assert (row.straggler_member, row.straggler_wait_ms, row.straggler_share) == (None, None, None)


def test_rebalances_in_quick_succession_form_a_storm(rebalances: list[Row]) -> None:
    assert [row.storm_id for row in of(rebalances, of_one)] == [None, "of_one/g/2", "of_one/g/2"]


@TALES.told
def late_member(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    joins = {"a": tale.joins("a")}
    tale.state(STABLE, PREPARING, 1, "leader_rejoin", member_id="a")
    tale.jumps(30_000)
    tale.member("removed", "b", "join_timeout")
    tale.completes(joins, {"a": [0, 1]})


def test_a_member_that_misses_the_barrier_is_the_straggler(rebalances: list[Row]) -> None:
    row = of(rebalances, late_member)[-1]
    assert (row.straggler_member, row.straggler_wait_ms, row.straggler_share) == ("b", 30_000.0, 1.0)
    assert (row.n_timed_out, row.members_before, row.members_after, row.n_joined, row.n_left) == (1, 2, 1, 0, 1)


def test_necessary_moves_do_not_lower_the_stickiness(rebalances: list[Row]) -> None:
    row = of(rebalances, late_member)[-1]
    assert (row.partitions_total, row.partitions_moved, row.moves_minimum, row.stickiness) == (2, 1, 1, 1.0)


@TALES.told
def superseded(tale: Tale) -> None:
    request = tale.joins("a")
    tale.state(EMPTY, PREPARING, 0, "member_join", member_id="a")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    tale.answers(request, generation=1, body={"protocol": "range", "leader": "a", "members": ["a"]})
    tale._generation = 1
    tale.forms({"b": [1], "a": [0]}, before=COMPLETING)


def test_a_rebalance_interrupted_by_the_next_is_superseded(rebalances: list[Row]) -> None:
    first, second = of(rebalances, superseded)
    assert (first.outcome, first.gen_after, first.sync_ms, first.partitions_total) == ("superseded", 1, None, None)
    assert (second.outcome, second.gen_before, second.gen_after, second.members_before) == ("completed", 1, 2, 1)
    assert first.end_seq == second.start_seq


@TALES.told
def emptied(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.state(STABLE, PREPARING, 1, "member_leave", member_id="a")
    tale.state(PREPARING, EMPTY, 2, "empty")
    tale._generation = 2
    tale.forms({"b": [0]})
    tale.state(STABLE, PREPARING, 3, "session_expired", member_id="b")


def test_an_emptied_group_starts_without_a_history(rebalances: list[Row]) -> None:
    _, left, anew, at_the_end = of(rebalances, emptied)
    assert (left.outcome, left.gen_after, left.members_after, left.n_joined, left.n_left) == ("emptied", 2, 0, 0, 1)
    assert (anew.members_before, anew.n_joined, anew.partitions_moved, anew.stickiness) == (0, 1, 0, 1.0)
    assert (at_the_end.outcome, at_the_end.end_seq, at_the_end.total_ms) == ("open", None, None)


@TALES.told
def unfair(tale: Tale) -> None:
    tale.forms({"a": [0, 1, 2, 3]})
    tale.forms({"a": [2, 3], "b": [0, 1]}, before=STABLE)
    tale.forms({"a": [0, 1], "b": [2, 3]}, before=STABLE)


def test_stickiness_is_the_share_of_necessary_moves(rebalances: list[Row]) -> None:
    _, needed, needless = of(rebalances, unfair)
    assert (needed.partitions_moved, needed.moves_minimum, needed.stickiness) == (2, 2, 1.0)
    assert (needless.partitions_moved, needless.moves_minimum, needless.stickiness) == (4, 0, 0.0)


@TALES.told
def cooperative(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol="cooperative-sticky")
    tale.forms({"a": [0], "b": []}, before=STABLE, protocol="cooperative-sticky", owned={"a": [0, 1]})
    tale.forms(
        {"b": [1], "a": [0]}, before=STABLE, cause="member_rejoin", protocol="cooperative-sticky", owned={"a": [0]}
    )
    tale.forms({"a": [0], "b": [1]}, before=STABLE, cause="member_rejoin", protocol="cooperative-sticky")


def test_the_second_round_of_a_cooperative_rebalance_is_a_followup(rebalances: list[Row]) -> None:
    rows = of(rebalances, cooperative)
    assert [row.followup for row in rows] == [False, False, True, False]
    assert {row.mode for row in rows} == {"cooperative"}


def test_a_partition_moves_once_in_several_rounds(rebalances: list[Row]) -> None:
    rows = of(rebalances, cooperative)
    assert [(row.partitions_total, row.partitions_moved, row.moves_minimum) for row in rows] == [
        (2, 0, 0),
        (1, 0, 0),
        (2, 1, 1),
        (2, 0, 0),
    ]


@TALES.told
def of_a_log(tale: Tale) -> None:
    tale.state(EMPTY, PREPARING, 7, "member_join", member_id="a")
    tale.passes(3)
    tale.state(PREPARING, COMPLETING, 8, "joined", body={"n_members": 3})
    tale.state(COMPLETING, STABLE, 8, "assigned", body={"n_members": 3, "n_static": 1})
    tale.passes(2000)
    tale.state(STABLE, PREPARING, 8, "member_leave", member_id="a")
    tale.state(PREPARING, COMPLETING, 9, "joined", body={"n_members": 2})


def test_a_log_gives_numbers_of_members_only(rebalances: list[Row]) -> None:
    first, second = of(rebalances, of_a_log)
    assert (first.members_before, first.members_after, first.n_static, first.membership) == (None, 3, 1, "mixed")
    assert (first.join_ms, first.mode, first.straggler_member, first.n_joined) == (3.0, None, None, None)
    assert (second.members_before, second.members_after, second.outcome) == (3, 2, "open")
