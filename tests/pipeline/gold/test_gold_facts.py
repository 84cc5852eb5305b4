"""The smaller gold tables: commits, fencing, heartbeats, times in states, and avoided rebalances."""

from __future__ import annotations

import pytest
from scenes.trace_tales import SESSION_MS, STABLE, Tale
from spark.gold_frames import Gold, Tales, of

from koordinator.pipeline import schema

TALES = Tales()


@pytest.fixture(scope="module")
def gold() -> Gold:
    return TALES.gold()


@TALES.told
def late_commit(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]})
    tale.commits("a", 1, 0)
    tale.forms({"a": [0, 1]}, before=STABLE, instances={"a": "one"})
    tale.commits("b", 1, 0, 1, error="UNKNOWN_MEMBER_ID")
    tale.commits("a", -1, 0)
    tale.asks("OffsetCommit", "a", member_id="a", generation=2, principal="User:alice")


def test_a_commit_is_compared_with_the_groups_generation_at_that_time(gold: Gold) -> None:
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


def test_calls_and_commits_have_the_user_of_the_request(gold: Gold) -> None:
    for table in (schema.CALL, schema.COMMIT):
        rows = [row for row in of(gold.rows(table), late_commit) if row.member_id == "a"]
        assert [row.principal for row in rows][-3:] == [None, None, "User:alice"], table.path


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


def test_fencing_names_the_replacing_member(gold: Gold) -> None:
    replaced, refused = of(gold.rows(schema.FENCING), fenced)
    assert (replaced.api, refused.api) == ("JoinGroup", "Heartbeat")
    for row in (replaced, refused):
        assert (row.instance_id, row.old_member, row.new_member, row.stage) == ("one", "old", "new", "Stable")


def test_a_returning_static_member_avoids_a_rebalance(gold: Gold) -> None:
    (row,) = of(gold.rows(schema.AVOIDED), fenced)
    assert (row.group_id, row.instance_id, row.generation, row.test_id) == ("g", "one", 1, "test_fenced")


@TALES.told
def heartbeats(tale: Tale) -> None:
    tale.forms({"a": [0]})
    for wait_ms in (0, 100, 200, 3_000):
        tale.passes(wait_ms)
        tale.beat("a", error="REBALANCE_IN_PROGRESS" if wait_ms == 200 else None)
    tale.beat("nobody", error="UNKNOWN_MEMBER_ID")


def test_heartbeat_percentiles_come_from_the_gaps(gold: Gold) -> None:
    row, nobody = of(gold.rows(schema.HEARTBEAT), heartbeats)
    assert (row.member_id, row.n, row.n_refused, row.session_timeout_ms) == ("a", 4, 1, SESSION_MS)
    assert (row.p50_gap_ms, row.p99_gap_ms, row.max_gap_ms) == (200.0, 2_944.0, 3_000.0)
    assert row.max_ratio_to_session == 3_000 / SESSION_MS
    assert (nobody.n, nobody.n_refused, nobody.p50_gap_ms, nobody.session_timeout_ms) == (1, 1, None, None)


def test_a_state_lasts_until_the_next_change_or_the_end_of_the_trace(gold: Gold) -> None:
    found = {row.state: (row.ms, row.visits) for row in of(gold.rows(schema.STATE_TIME), heartbeats)}
    assert found == {"PreparingRebalance": (0.0, 1), "CompletingRebalance": (0.0, 1), "Stable": (3_300.0, 1)}
