"""The smaller gold tables: commits, fencing, heartbeats, the time in each state, and rebalances that were avoided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.trace_tales import SESSION_MS, STABLE, Tale
from spark.gold_frames import Gold, Tales, of

from koordinator.pipeline import schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TALES = Tales()


@pytest.fixture(scope="module")
def gold(spark: SparkSession) -> Gold:
    return TALES.gold(spark)


@TALES.told
def late_commit(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    tale.commits("a", 1, 0)
    tale.forms({"a": [0, 1]}, before=STABLE, instances={"a": "one"})
    tale.commits("b", 1, 0, 1, error="UNKNOWN_MEMBER_ID")
    tale.commits("a", -1, 0)
    tale.asks("OffsetCommit", "a", member_id="a", generation=2)


def test_a_commit_is_compared_with_its_group_as_it_was_then(gold: Gold) -> None:
    rows = of(gold.rows(schema.COMMIT), late_commit)
    assert [(row.member, row.generation, row.group_generation, row.gen_lag, row.is_zombie) for row in rows] == [
        ("one", 1, 1, 0, False),
        ("b", 1, 2, 1, True),
        ("one", -1, 2, None, False),
        ("one", 2, 2, 0, False),
    ]
    assert [(row.error, row.n_partitions) for row in rows] == [
        ("NONE", 1),
        ("UNKNOWN_MEMBER_ID", 2),
        ("NONE", 1),
        (None, None),
    ]
    assert {row.state_at for row in rows} == {"Stable"}


@TALES.told
def fenced(tale: Tale) -> None:
    tale.forms({"old": [0]}, instances={"old": "one"})
    tale.line(
        "member",
        change="replaced",
        member_id="old",
        instance_id="one",
        cause="fenced",
        reason="Static member old with instance id one was replaced by new",
    )
    tale.line("avoided_static", member_id="new", instance_id="one", generation=1, cause="avoided_static")
    tale.call("Heartbeat", "old", "FENCED_INSTANCE_ID", member_id="old", instance_id="one", generation=1)


def test_who_is_fenced_is_told_so_by_whom_it_was_replaced(gold: Gold) -> None:
    replaced, refused = of(gold.rows(schema.FENCING), fenced)
    assert (replaced.api, refused.api) == ("JoinGroup", "Heartbeat")
    for row in (replaced, refused):
        assert (row.instance_id, row.old_member, row.new_member, row.stage) == ("one", "old", "new", "Stable")


def test_a_static_member_that_comes_back_saves_a_rebalance(gold: Gold) -> None:
    (row,) = of(gold.rows(schema.AVOIDED), fenced)
    assert (row.group_id, row.instance_id, row.generation, row.test_id) == ("g", "one", 1, "test_fenced")


@TALES.told
def beating(tale: Tale) -> None:
    tale.forms({"a": [0]})
    for wait_ms in (0, 100, 200, 3_000):
        tale.passes(wait_ms)
        tale.beat("a", error="REBALANCE_IN_PROGRESS" if wait_ms == 200 else None)
    tale.beat("nobody", error="UNKNOWN_MEMBER_ID")


def test_heartbeats_are_as_regular_as_the_gaps_between_them(gold: Gold) -> None:
    row, nobody = of(gold.rows(schema.HEARTBEAT), beating)
    assert (row.member_id, row.n, row.n_refused, row.session_timeout_ms) == ("a", 4, 1, SESSION_MS)
    assert (row.p50_gap_ms, row.p99_gap_ms, row.max_gap_ms) == (200.0, 2_944.0, 3_000.0)
    assert row.max_ratio_to_session == 3_000 / SESSION_MS
    assert (nobody.n, nobody.n_refused, nobody.p50_gap_ms, nobody.session_timeout_ms) == (1, 1, None, None)


def test_a_state_lasts_until_the_next_one_and_the_last_one_until_the_end(gold: Gold) -> None:
    found = {row.state: (row.ms, row.visits) for row in of(gold.rows(schema.STATE_TIME), beating)}
    assert found == {"PreparingRebalance": (0.0, 1), "CompletingRebalance": (0.0, 1), "Stable": (3_300.0, 1)}
