"""The facts of the report, compared with figures counted by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spark.report_store import EVIL, empty_facts, query_of, store_facts

from koordinator.emulator.trace.vocabulary import REMOVAL_CAUSES
from koordinator.pipeline.report.facts import QUERIES, Facts, interval
from koordinator.pipeline.schema import REBALANCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"

CAUSES = ("join", "leave")

END, DAY_S = datetime(2026, 11, 21, tzinfo=UTC), 86_400


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def facts(request: pytest.FixtureRequest, spark: SparkSession) -> Facts:
    """Return the facts that DuckDB and Spark find in the same store."""
    return store_facts(spark, by_spark=request.param == "spark")


def of(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def test_totals_cover_all_tables(facts: Facts) -> None:
    totals = facts.totals
    assert (totals["begun"], totals["completed"], totals["emptied"], totals["superseded"]) == (8, 6, 1, 1)
    assert (totals["groups"], totals["traces"], totals["events"], totals["avoided"]) == (3, 1, 500, 3)
    assert totals["stopped_s"] == pytest.approx(0.76)
    assert totals["hours"] == pytest.approx(2, abs=1e-4)


def test_both_engines_find_the_same_facts(spark: SparkSession) -> None:
    assert store_facts(spark) == store_facts(spark, by_spark=True)


def test_the_removals_are_those_of_the_vocabulary() -> None:
    assert str(REMOVAL_CAUSES) in QUERIES["removals"]


def test_rebalances_are_counted_by_cause_and_time(facts: Facts) -> None:
    assert facts.interval_s == 1
    assert of(facts.causes, "cause", "begun", "completed", "sub_causes", "followups") == [
        ("member_join", 5, 4, [], 0),
        ("leader_rejoin", 1, 1, [], 1),
        ("member_leave", 1, 1, ["consumer_closed"], 0),
        ("session_expired", 1, 0, [], 0),
    ]
    start = facts.totals["first_s"]
    assert [(row["at_s"] - start, row["cause"], row["n"]) for row in facts.by_time][:2] == [
        (0, "member_join", 3),
        (10, "leader_rejoin", 1),
    ]


def test_the_interval_of_a_bar_limits_the_number_of_bars() -> None:
    assert interval(None, None) == 1
    assert interval(100, 159) == 1
    assert interval(100, 160) == 2
    assert interval(0, 59 * 3600) == 3600
    assert interval(0, 10**10) == 30 * 86_400


def test_join_times_have_logarithmic_bars(facts: Facts) -> None:
    assert of(facts.join_times, "bar", "cohort", "n") == [
        (4, "cooperative", 1),  # 16 ms
        (5, "cooperative", 1),  # 24 ms
        (6, "dynamic", 1),  # 40 ms
        (7, "static", 1),  # 80 ms
        (8, "dynamic", 1),  # 160 ms
        (10, "dynamic", 1),  # 320 ms
    ]


def test_stopped_time_is_summed_by_group_and_member(facts: Facts) -> None:
    assert of(facts.stopped_groups, "group_id", "rebalances", "stopped_s", "longest_ms") == [
        ("d", 3, pytest.approx(0.68), 380.0),
        ("s", 1, pytest.approx(0.08), 80.0),
        ("c", 2, 0.0, 0.0),
    ]
    assert of(facts.stopped_members, "member", "rebalances", "stopped_s", "uncommitted") == [
        ("worker", 3, pytest.approx(0.6), 1),
        ("other", 1, pytest.approx(0.08), 0),
        ("a", 1, pytest.approx(0.08), 0),
        ("calm", 2, 0.0, 0),
    ]


def test_a_straggler_has_its_delay_and_share(facts: Facts) -> None:
    columns = ("group_id", "member", "times", "wait_ms", "share", "timed_out")
    assert of(facts.stragglers, *columns) == [("d", "slow-1", 1, 300.0, 0.75, 1)]


def test_state_times_list_the_busiest_group_first(facts: Facts) -> None:
    assert of(facts.state_times, "group_id", "PreparingRebalance", "Empty") == [
        ("d", 500.0, 0.0),
        ("s", 80.0, 0.0),
        ("c", 0.0, 0.0),
    ]


def test_moves_are_between_two_members(facts: Facts) -> None:
    start = facts.totals["first_s"]
    assert [(row["group_id"], row["partition"], row["at_s"] - start, row["n"]) for row in facts.moves] == [
        ("c", 3, 10, 1),
        ("d", 0, 20, 1),
        ("d", 0, 21, 1),
        ("d", 1, 20, 1),
    ]


def test_cohorts_are_compared_by_the_costs_of_rebalances(facts: Facts) -> None:
    columns = ("cohort", "rebalances", "groups", "stopped_ms", "moved", "needed", "redelivered", "avoided")
    assert of(facts.cohorts, *columns) == [
        ("static", 1, 1, 80.0, 0, 0, None, 3),
        ("dynamic", 3, 1, 170.0, 5, 4, 7, None),
        ("cooperative", 2, 1, 0.0, 1, 1, 0, None),
    ]
    assert of(facts.cohorts, "per_hour") == [(pytest.approx(1.0, rel=1e-3),), (6.0,), (4.0,)]


def test_consumer_groups_are_a_cohort_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    kinds = ("classic", "consumer")
    rows = [{"type": kind, "mode": "cooperative", "membership": "dynamic", "join_ms": 1.0} for kind in kinds]
    query = query_of(spark, tmp_path, {REBALANCE.path: rows})
    assert of(query(QUERIES["join_times"]), "cohort") == [("consumer",), ("cooperative",)]


def test_commits_are_counted_by_error_and_state(facts: Facts) -> None:
    assert of(facts.commits, "error", "state_at", "n", "zombies", "lag") == [
        (None, None, 1, 0, None),
        ("ILLEGAL_GENERATION", "Stable", 1, 1, 2),
        ("NONE", "Stable", 2, 0, None),
        ("REBALANCE_IN_PROGRESS", "CompletingRebalance", 1, 0, None),
    ]


def test_wasted_work_and_storms_name_their_group(facts: Facts) -> None:
    assert of(facts.wasted, "group_id", "redelivered", "gap_s", "moved", "needless") == [
        ("d", 7, pytest.approx(1.2), 5, 1),
        ("c", 0, pytest.approx(0.02), 1, 0),
    ]
    assert of(facts.storms, "storm_id", "rebalances", "took_ms", "stopped_s", "start_seq") == [
        ("d-2", 2, pytest.approx(1200), pytest.approx(0.64), 20)
    ]


def test_a_storm_names_the_member_that_began_it(facts: Facts) -> None:
    assert of(facts.storms, "first_member", "first_cause", "causes") == [
        ("blue-1", "member_leave", ["member_join", "member_leave"])
    ]


def test_a_dynamic_member_that_left_and_returned_cost_two_rebalances(facts: Facts) -> None:
    mean_ms = (50 + 400 + 200 + 10) / 4
    assert of(facts.gains, "group_id", "rebalances", "static_n", "static_ms") == [
        ("d", 5, 2, pytest.approx(2 * mean_ms))
    ]


def test_a_cooperative_assignor_saves_the_stops_of_members_that_keep_partitions(facts: Facts) -> None:
    assert of(facts.gains, "cooperative_least_ms", "cooperative_most_ms") == [(80.0, 460.0)]


def test_the_gains_are_those_of_the_laboratory() -> None:
    claims = json.loads((DOCS / "lab.json").read_text(encoding="utf-8"))["claims"]
    assert claims["a-static-rolling-restart-is-quiet"]["verdict"] == "holds"
    assert claims["a-deployment-costs-two-rebalances"]["figures"] == "2 rebalances"
    assert claims["cooperative-stops-none"]["figures"].endswith("0 cooperative")


def test_logs_have_no_gain_from_a_cooperative_assignor(spark: SparkSession, tmp_path: Path) -> None:
    shared = {"group_id": "g", "membership": "dynamic", "total_ms": 5.0}
    rows = [{"rebalance_no": number, "cause": f"member_{cause}"} | shared for number, cause in enumerate(CAUSES)]
    found = query_of(spark, tmp_path, {REBALANCE.path: rows})(QUERIES["gains"])
    assert of(found, "static_n", "static_ms", "cooperative_most_ms") == [(2, 10.0, None)]


def weeks(spark: SparkSession, root: Path, since_day: int, *days: float, **more: str) -> list[dict[str, Any]]:
    """Return the weeks of rebalances that began these days before the end, if the input began `since_day` before."""
    rows = [
        {"rebalance_no": number, "started_at": END - timedelta(days=day), "group_id": "g"} | more
        | {"sync_ms": 2.0, "total_ms": 5.0}
        for number, day in enumerate(days)
    ]  # fmt: skip
    query, until_s = query_of(spark, root, {REBALANCE.path: rows}), int(END.timestamp())
    return query(QUERIES["weeks"], since_s=until_s - since_day * DAY_S, until_s=until_s)


def test_a_week_is_compared_with_the_week_before(spark: SparkSession, tmp_path: Path) -> None:
    columns = ("rebalances_now", "rebalances_before", "least_ms_now", "most_ms_now", "least_ms_before")
    for mode, least_ms in (("eager", 4.0), ("cooperative", 0.0)):
        found = weeks(spark, tmp_path / mode, 14, 0, 6.9, 7, 13.9, 14, mode=mode)
        assert of(found, *columns) == [(2, 2, least_ms, 10.0, least_ms)]


def test_an_input_of_a_week_has_no_week_before(spark: SparkSession, tmp_path: Path) -> None:
    assert weeks(spark, tmp_path, 7, 0, 7) == []


def test_verdicts_are_counted_and_failures_keep_their_events(facts: Facts) -> None:
    counts = ("check_id", "pass", "fail", "inconclusive", "not_applicable")
    assert of(facts.checks, *counts) == [("S01", 2, 0, 0, 0), ("C03", 0, 1, 0, 1)]
    assert of(facts.failures, "trace_id", "group_id", "check_id", "first_seq") == [("t", "d", "C03", 3)]


def test_tests_and_clients_equal_the_marts(facts: Facts) -> None:
    assert of(facts.flaky, "test_id") == [("test_flaky",)]
    assert of(facts.rebalance_heavy, "test_id") == [("test_flaky",), ("test_calm",)]
    assert of(facts.clients, "client_software", "scenarios", "runs", "broken", "rebalances") == [("lib", 2, 4, 1, 2.5)]


def test_every_input_row_is_accounted_for(facts: Facts) -> None:
    assert of(facts.rows_read, "source", "files", "read", "event", "quarantined") == [("koordinator", 1, 502, 500, 1)]
    assert of(facts.quarantine, "reason", "n", "source_file", "line_no", "detail") == [
        ("bad_json", 1, "a.jsonl", 77, EVIL)
    ]
    assert of(facts.fencing, "api", "stage", "n", "members") == [("Heartbeat", "Stable", 2, 1)]
    assert of(facts.transactions, "outcome", "cause", "n", "markers_ms", "partitions", "offsets") == [
        ("committed", "committed", 2, 3.0, 3, 1),
        ("aborted", "timed_out", 1, None, 1, 0),
    ]
    assert of(facts.logs, "source", "joins", "arrived", "p50") == [("java", 2, 1, 30.0)]
    assert of(facts.heartbeats, "member", "max_ratio_to_session") == [("m-1", 0.9), ("m-2", 0.3)]


def test_empty_tables_give_empty_facts(spark: SparkSession) -> None:
    facts = empty_facts(spark)
    assert facts.totals["begun"] == 0
    assert facts.cohorts == facts.causes == facts.moves == []
