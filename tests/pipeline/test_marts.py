"""Comparison of clients, flaky tests, and cohorts: the definition of a run, and the difference of means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from spark.literal_frames import literal
from spark.report_store import query_of

from koordinator.pipeline import schema
from koordinator.pipeline.cohorts import cohort_names, compare_cohorts
from koordinator.pipeline.frames import rows_of, sql
from koordinator.pipeline.layers import QUERIES

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from koordinator.pipeline.frames import Frame


def rebalances(**of_trace: int) -> Frame:
    rows = [
        {"trace_id": trace_id, "rebalance_no": number} for trace_id, n in of_trace.items() for number in range(1, n + 1)
    ]
    return literal(None, schema.REBALANCE, *rows, group_id="g", join_ms=2.0)


def runs_of(**inputs: Frame) -> pa.Table:
    return sql(QUERIES["mart/test_run"], schema.TEST_RUN, **inputs)


def test_flake_rate_is_the_share_of_runs_that_differ_from_the_majority() -> None:
    ran = [("t1", "r1", "passed"), ("t2", "r2", "failed"), ("t3", "r3", "error"), ("t4", "r4", "skipped")]
    # a test with two clusters has two traces, and is one run
    ran.append(("t5", "r1", "passed"))
    rows = [{"trace_id": trace, "run_id": run, "outcome": outcome} for trace, run, outcome in ran]
    test = literal(None, schema.TEST, *rows, test_id="x", rerun=0)
    # a trace outside of tests is no run of one
    traces = [{"trace_id": trace, "run_id": run} for trace, run, _ in (*ran, ("t6", "t6", None))]
    trace = literal(None, schema.TRACE, *traces)
    none = {"silver_member": literal(None, schema.MEMBER), "mart_verdict": literal(None, schema.VERDICT)}
    begun = rebalances(t1=1, t5=2, t2=4, t3=6, t4=9, t6=1)
    runs = runs_of(silver_trace=trace, silver_test=test, gold_rebalance=begun, **none)
    assert len(runs) == 6
    (row,) = rows_of(sql(QUERIES["mart/flaky"], schema.FLAKY, mart_test_run=runs))
    assert (row.runs, row.failed) == (3, 2)
    assert row.flake_rate == pytest.approx(1 / 3)
    assert (row.rebalances_passed, row.rebalances_failed) == (3, 5)


def test_a_client_counts_only_its_own_verdicts() -> None:
    trace = literal(None, schema.TRACE, {"trace_id": "t1", "started_us": 1_000_000}, test_id="x")
    test = literal(None, schema.TEST, {"trace_id": "t1", "test_id": "x", "outcome": "failed"})
    clients = [("a", "1"), ("b", "2"), ("unjudged", "3")]
    member = literal(
        None,
        schema.MEMBER,
        *({"member_id": name, "client_software": name, "client_version": version} for name, version in clients),
        trace_id="t1",
        group_id="g",
    )
    said = [
        ("a 1", "C05", "fail"),
        ("b 2", "C01", "pass"),
        ("clients", "C03", "inconclusive"),
        ("coordinator", "S01", "fail"),
    ]
    verdict = literal(
        None,
        schema.VERDICT,
        *({"subject": subject, "check_id": check, "status": status} for subject, check, status in said),
        trace_id="t1",
        group_id="g",
    )
    runs = runs_of(
        silver_trace=trace,
        silver_test=test,
        silver_member=member,
        gold_rebalance=rebalances(t1=3),
        mart_verdict=verdict,
    )
    rows = rows_of(sql(QUERIES["mart/client_matrix"], schema.CLIENT_MATRIX, mart_test_run=runs))
    found = {row.client_software: (row.scenario, row.status, row.runs, row.failed, row.rebalances) for row in rows}
    assert found == {
        "a": ("x", "fail", 1, 1, 3),
        "b": ("x", "inconclusive", 1, 1, 3),
        "unjudged": ("x", "inconclusive", 1, 1, 3),
    }


@pytest.mark.parametrize("by_spark", [False, True])
def test_differences_have_an_interval_and_the_baseline_has_none(
    spark: SparkSession, tmp_path: Path, *, by_spark: bool
) -> None:
    rows = [{"membership": "old", "join_ms": value} for value in (1.0, 2.0, 3.0)]
    rows += [{"membership": "new", "join_ms": value} for value in (11.0, 12.0, 13.0)]
    query = query_of(spark, tmp_path, {schema.REBALANCE.path: rows}, by_spark=by_spark)
    base, other = compare_cohorts(query, "membership", "old")
    assert [base[name] for name in ("cohort", "n", "mean", "median", "difference")] == ["old", 3, 2, 2, None]
    assert (other["cohort"], other["difference"]) == ("new", 10)
    # each mean has the variance 1/3
    reach = 1.959964 * (2 / 3) ** 0.5
    assert (other["low"], other["high"]) == pytest.approx((10 - reach, 10 + reach))
    assert other["p95"] == pytest.approx(12.9)


@pytest.mark.parametrize(
    ("by", "cohorts"),
    [
        ("commit", {"abc"}),
        ("membership", {"static", "mixed"}),
        ("client_version", {"several", "a 1"}),
    ],
)
def test_cohorts_share_a_version_commit_or_membership(
    spark: SparkSession, tmp_path: Path, by: str, cohorts: set[str]
) -> None:
    members: list[dict[str, object]] = [
        {"member_id": "m1", "is_static": True, "client_software": "a", "client_version": "1"},
        {"member_id": "m2", "is_static": False, "client_software": "b", "client_version": "2"},
    ]
    stop = {"member_id": "m1", "stopped_ms": 5.0, "membership": "static", "client_software": "a", "client_version": "1"}
    rows = {
        schema.TRACE.path: [{"commit": "abc", "started_us": 1}],
        schema.MEMBER.path: [{"group_id": "g", "first_seq": 1} | member for member in members],
        schema.REBALANCE.path: [{"group_id": "g", "join_ms": 2.0, "membership": "mixed"}],
        schema.MEMBER_DOWNTIME.path: [{"group_id": "g"} | stop],
    }
    query = query_of(spark, tmp_path, rows)
    assert {*cohort_names(query, by)} == cohorts
    found = compare_cohorts(query, by, "none of them")
    assert {(row["metric"], row["mean"]) for row in found} == {
        ("join_ms", 2.0),
        ("stopped_ms", 5.0),
        ("rebalances_per_trace", 1.0),
    }
