"""gold/member_downtime and gold/partition_gap: the costs of a rebalance for members and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.trace_tales import COMPLETING, EMPTY, PREPARING, STABLE, Tale
from spark.gold_frames import Gold, Tales, of

from koordinator.pipeline import schema

if TYPE_CHECKING:
    from pyspark.sql import Row

TALES = Tales()
COOPERATIVE = "cooperative-sticky"


@pytest.fixture(scope="module")
def gold() -> Gold:
    return TALES.gold()


@pytest.fixture(scope="module")
def downtimes(gold: Gold) -> list[Row]:
    return gold.rows(schema.MEMBER_DOWNTIME)


@pytest.fixture(scope="module")
def gaps(gold: Gold) -> list[Row]:
    return gold.rows(schema.PARTITION_GAP)


def by_member(rows: list[Row], trace_id: str, rebalance_no: int) -> dict[str, Row]:
    return {row.member: row for row in of(rows, trace_id) if row.rebalance_no == rebalance_no}


def delivers(tale: Tale, client: str, partition: int, upto: int) -> None:
    """Let a client receive the records of a partition up to an offset."""
    request = tale.asks("Fetch", client, of_group=False)
    tale.answers(request, body={"fetched": [["t", partition, 0, upto]]})


@TALES.told
def eager(tale: Tale) -> None:
    tale.forms({"a": [0, 1]})
    delivers(tale, "a", 1, 9)
    tale.commits("a", 1, 0, 1)  # up to offset 5
    joins = {"b": tale.joins("b")}
    tale.state(STABLE, PREPARING, 1, "member_join", member_id="b")
    tale.passes(10)
    tale.commits("a", 1, 0)
    joins = {"a": tale.joins("a"), **joins}
    tale.passes(3)
    tale.completes(joins, {"a": [0], "b": [1]})


def test_an_eager_member_is_stopped_from_its_join_to_its_assignment(downtimes: list[Row]) -> None:
    found = by_member(downtimes, eager, 2)
    assert (found["a"].stopped_ms, found["a"].waited_ms) == (3.0, 3.0)
    assert (found["b"].stopped_ms, found["b"].waited_ms) == (13.0, 13.0)
    assert {(row.mode, row.membership) for row in found.values()} == {("eager", "dynamic")}


def test_kept_received_and_lost_partitions_are_counted(downtimes: list[Row]) -> None:
    found = by_member(downtimes, eager, 2)
    assert (found["a"].kept_n, found["a"].assigned_n, found["a"].revoked_n) == (1, 0, 1)
    assert (found["b"].kept_n, found["b"].assigned_n, found["b"].revoked_n) == (0, 1, 0)


def test_a_commit_after_the_notification_is_a_commit_before_revoke(downtimes: list[Row]) -> None:
    found = by_member(downtimes, eager, 2)
    assert (found["a"].commit_before_revoke, found["b"].commit_before_revoke) == (True, None)


def test_a_gap_lasts_from_the_old_owners_join_to_the_new_owners_assignment(gaps: list[Row]) -> None:
    first, second, moved = of(gaps, eager)
    assert [(row.rebalance_no, row.partition, row.old_member, row.gap_ms) for row in (first, second)] == [
        (1, 0, None, None),
        (1, 1, None, None),
    ]
    assert (moved.rebalance_no, moved.topic, moved.partition) == (2, "t", 1)
    assert (moved.old_member, moved.new_member, moved.gap_ms) == ("a", "b", 3.0)


def test_fetched_but_uncommitted_records_are_redelivered(gaps: list[Row]) -> None:
    moved = of(gaps, eager)[-1]
    assert (moved.last_fetched, moved.last_committed, moved.redelivered_records) == (9, 5, 4)


@TALES.told
def cooperative(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.passes(100)
    tale.forms({"a": [0], "b": []}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})
    tale.passes(100)
    joins = {"a": tale.joins("a", owned={"t": [0]})}
    tale.state(STABLE, PREPARING, 2, "member_rejoin", member_id="a")
    tale.passes(20)
    joins["b"] = tale.joins("b")
    tale.completes(joins, {"a": [0], "b": [1]}, protocol=COOPERATIVE)


def test_a_cooperative_member_that_keeps_all_partitions_is_not_stopped(downtimes: list[Row]) -> None:
    found = by_member(downtimes, cooperative, 3)
    assert (found["a"].mode, found["a"].stopped_ms, found["a"].waited_ms) == ("cooperative", 0.0, 20.0)
    assert (found["a"].kept_n, found["a"].revoked_n, found["b"].assigned_n) == (1, 0, 1)


def test_a_cooperative_member_loses_a_revoked_partition_at_once(downtimes: list[Row]) -> None:
    found = by_member(downtimes, cooperative, 2)
    assert (found["a"].kept_n, found["a"].revoked_n, found["a"].commit_before_revoke) == (1, 1, None)


def test_an_unassigned_partition_has_no_owner_until_the_next_round(gaps: list[Row]) -> None:
    unassigned, reassigned = of(gaps, cooperative)[2:]
    assert (unassigned.rebalance_no, unassigned.old_member, unassigned.new_member) == (2, "a", None)
    assert (reassigned.rebalance_no, reassigned.old_member, reassigned.new_member, reassigned.gap_ms) == (
        3,
        "a",
        "b",
        20.0,
    )


@TALES.told
def one_died(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    tale.member("removed", "b", "session_expired")
    joins = {}
    tale.state(STABLE, PREPARING, 1, "session_expired", member_id="b")
    tale.passes(50)
    joins["a"] = tale.joins("a")
    tale.completes(joins, {"a": [0, 1]})


def test_the_gap_of_a_dead_member_starts_at_its_removal(gaps: list[Row]) -> None:
    moved = of(gaps, one_died)[-1]
    assert (moved.old_member, moved.new_member, moved.gap_ms) == ("b", "a", 50.0)


@TALES.told
def superseded(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    joins = {name: tale.joins(name) for name in ("a", "b")}
    tale.state(STABLE, PREPARING, 1, "metadata_change", member_id="a")
    tale.state(PREPARING, COMPLETING, 2, "joined")
    for name, request in joins.items():
        listed = ["a", "b"] if name == "a" else []
        tale.answers(request, generation=2, body={"protocol": "range", "leader": "a", "members": listed})
    tale._generation = 2
    tale.passes(40)
    tale.forms({"a": [1], "b": [0]}, before=COMPLETING)


def test_an_eager_owner_gives_up_with_its_first_join_of_superseded_rebalances(
    gaps: list[Row],
) -> None:
    assert [row.gap_ms for row in of(gaps, superseded)[2:]] == [40.0, 40.0]


def test_without_a_sync_response_the_stopped_time_is_unknown(downtimes: list[Row]) -> None:
    found = by_member(downtimes, superseded, 2)
    assert [(row.stopped_ms, row.kept_n) for row in found.values()] == [(None, None), (None, None)]


@TALES.told
def bounced(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.member("removed", "a", "member_leave")
    tale.state(STABLE, PREPARING, 1, "member_leave", member_id="a")
    tale.state(PREPARING, EMPTY, 2, "empty")
    tale.passes(500)
    tale._generation = 2
    tale.forms({"b": [0]})


def test_a_gap_spans_the_time_in_which_the_group_is_empty(downtimes: list[Row], gaps: list[Row]) -> None:
    assert by_member(downtimes, bounced, 3)["b"].assigned_n == 1
    last = of(gaps, bounced)[-1]
    assert (last.old_member, last.new_member, last.gap_ms) == ("a", "b", 500.0)
