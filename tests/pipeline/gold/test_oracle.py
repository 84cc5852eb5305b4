"""The gold tables agree with the emulator about the same lines: simulations under churn, and recorded traces."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from spark.gold_frames import Gold

from koordinator import Simulation
from koordinator.emulator.http.metrics import ClusterCounters
from koordinator.emulator.verify.rebalances import rebalances
from koordinator.emulator.verify.zombies import STALE, zombies
from koordinator.pipeline import schema

if TYPE_CHECKING:
    from pyspark.sql import Row

    from koordinator.emulator.server.cluster_registry import RegisteredCluster
    from koordinator.emulator.verify.group_trace import GroupTrace
    from koordinator.trace.exchanges import Line

RECORDED = Path(__file__).parents[2] / "pages" / "traces"


SAME = {
    "number": "rebalance_no",
    "cause": "cause",
    "sub_cause": "sub_cause",
    "reason": "reason",
    "client_reason": "client_reason",
    "trigger": "trigger_member",
    "generation_before": "gen_before",
    "generation": "gen_after",
    "straggler": "straggler_member",
    "straggler_wait_ms": "straggler_wait_ms",
    "join_ms": "join_ms",
    "sync_ms": "sync_ms",
    "outcome": "outcome",
    "start_seq": "start_seq",
    "join_seq": "join_seq",
    "end_seq": "end_seq",
}
"""Columns whose names differ between the emulator and the table."""


COUNTED: dict[str, ClusterCounters] = {}
"""The emulator's own counters for /metrics, by trace."""


def churn(
    name: str, seed: int, away_s: float, *, static: bool = False, third: str = "healthy", **puppet: Any
) -> list[Line]:
    """Let members join, pause, leave, crash and return; return the lines of the trace."""
    with Simulation(topics={"t": 7}, config={"group.initial.rebalance.delay.ms": 1000}, seed=seed) as cluster:
        COUNTED[name] = ClusterCounters(cast("RegisteredCluster", SimpleNamespace(cluster=cluster._port.built)))
        group = cluster.group("svc")
        a, b, c = (
            group.create_puppet(
                name,
                session_timeout=10,
                heartbeat_interval=2,
                instance_id=name if static else None,
                behaviour=behaviour,
                **puppet,
            )
            for name, behaviour in (("a", "healthy"), ("b", "healthy"), ("c", third))
        )
        for puppet_, pause_s in ((a, 5), (b, 4), (c, 20)):
            puppet_.join()
            cluster.pass_time(pause_s)
        b.stop()
        cluster.pass_time(away_s)
        b.join()
        cluster.pass_time(15)
        a.commit({("t", 0): 3})
        a.leave()
        cluster.pass_time(0.5)
        a.join()
        cluster.pass_time(15)
        if c.state != "out":
            c.stop()
        cluster.pass_time(60)
        a.leave()
        b.leave()
        cluster.pass_time(1)
        if c.state == "out":
            c.join()
        lines: list[Line] = json.loads(json.dumps(cluster.events()))
        return lines


@pytest.fixture(scope="module")
def gold() -> Gold:
    traces = {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in RECORDED.glob("*.jsonl")
    }
    traces["eager"] = churn("eager", 1, 7, protocols=["range"])
    traces["cooperative"] = churn("cooperative", 2, 8, protocols=["cooperative-sticky"])
    traces["static"] = churn("static", 3, 7, static=True, protocols=["range"])
    traces["slow"] = churn("slow", 4, 12, third="straggler", rebalance_timeout=4, protocols=["range"])
    traces["flapping"] = churn("flapping", 5, 12, third="flapping", static=True, protocols=["cooperative-sticky"])
    traces["stuck"] = churn("stuck", 6, 12, third="never_syncs", rebalance_timeout=12, protocols=["range"])
    return Gold(traces)


@pytest.fixture(scope="module")
def stories(gold: Gold) -> dict[tuple[str, str], GroupTrace]:
    found = gold.stories()
    assert sum(len(rebalances(story)) for story in found.values()) > 20, "too few rebalances to compare"
    return found


def by_group(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.trace_id, row.group_id), []).append(row)
    return found


def test_rebalances_equal_those_of_the_emulator(gold: Gold, stories: dict[tuple[str, str], GroupTrace]) -> None:
    found = by_group(gold.rows(schema.REBALANCE))
    for key, story in stories.items():
        seen = [{name: row[column] for name, column in SAME.items()} for row in found.get(key, [])]
        assert seen == [{name: getattr(each, name) for name in SAME} for each in rebalances(story)], key
        late = [row.n_timed_out for row in found.get(key, [])]
        assert late == [len(each.timed_out) for each in rebalances(story)], key
        members = [row.members_after for row in found.get(key, []) if row.join_seq is not None]
        assert members == [len(each.members) for each in rebalances(story) if each.join_seq is not None], key


def test_rebalance_counts_and_durations_equal_the_emulators_metrics(gold: Gold) -> None:
    found = by_group(gold.rows(schema.REBALANCE))
    for trace_id, counted in COUNTED.items():
        rows = found[trace_id, "svc"]
        over_ms = [row.join_ms for row in rows if row.join_ms is not None]
        assert Counter(row.cause for row in rows) == counted.rebalances, trace_id
        assert len(over_ms) == counted.barriers.total(), trace_id
        assert sum(over_ms) == pytest.approx(counted.barriers_s * 1000), trace_id


def test_joined_and_left_members_are_the_difference_of_two_generations(
    gold: Gold, stories: dict[tuple[str, str], GroupTrace]
) -> None:
    found = by_group(gold.rows(schema.REBALANCE))
    for key, story in stories.items():
        before: set[str] | None = None
        for row, each in zip(found.get(key, []), rebalances(story), strict=True):
            now = set(each.members)
            if each.generation is not None and before is not None:
                assert (row.n_joined, row.n_left) == (len(now - before), len(before - now)), (key, each.number)
            before = now if each.generation is not None else before


def test_every_commit_has_a_row_and_stale_commits_are_zombies(
    gold: Gold, stories: dict[tuple[str, str], GroupTrace]
) -> None:
    found = by_group(gold.rows(schema.COMMIT))
    for key, story in stories.items():
        rows = found.get(key, [])
        assert [(row.seq, row.member, row.error, row.generation) for row in rows] == [
            (call.seq, story.label(call.member_id), call.error, call.generation)
            for call in story.exchanges
            if call.api == "OffsetCommit"
        ], key
        stale = {zombie.exchange.seq for zombie in zombies(story) if zombie.kind == STALE}
        assert stale <= {row.seq for row in rows if row.is_zombie}, key


def test_heartbeats_and_avoided_rebalances_are_counted_completely(
    gold: Gold, stories: dict[tuple[str, str], GroupTrace]
) -> None:
    heartbeats = {(row.trace_id, row.group_id, row.member_id): row.n for row in gold.rows(schema.HEARTBEAT)}
    heartbeat_lines = Counter(
        (*key, call.member_id)
        for key, story in stories.items()
        for call in story.exchanges
        if call.api == "Heartbeat" and call.member_id
    )
    assert heartbeats == dict(heartbeat_lines)
    avoided = Counter((row.trace_id, row.group_id) for row in gold.rows(schema.AVOIDED))
    avoided_lines = Counter(
        key for key, story in stories.items() for line in story.group_lines if line["kind"] == "avoided_static"
    )
    assert avoided == avoided_lines
    assert sum(avoided_lines.values()) > 1


def test_state_times_add_up_to_the_time_from_first_change_to_end(
    gold: Gold, stories: dict[tuple[str, str], GroupTrace]
) -> None:
    found = by_group(gold.rows(schema.STATE_TIME))
    for key, story in stories.items():
        changes = [line for line in story.group_lines if line["kind"] == "state"]
        assert story.end is not None
        if changes:
            total_ms = (story.end["group_ts_us"] - changes[0]["group_ts_us"]) / 1000
            assert sum(row.ms for row in found[key]) == total_ms
            assert Counter(line["state_to"] for line in changes) == {row.state: row.visits for row in found[key]}
