"""mart/test_run, and the comparisons of tests and of clients that are made from it: mart/flaky, mart/client_matrix.

They read one row for each trace of the store, instead of the rebalances, members and verdicts of all loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.emulator.verify.observations import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS

from ..frames import select_schema
from ..schema import CLIENT_MATRIX, FLAKY, TEST_RUN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLIENT = ("client_software", "client_version")

WORST_FIRST = (FAIL, INCONCLUSIVE, PASS, NOT_APPLICABLE)

SEVERAL = "clients"
"""Subject of a verdict that concerns several clients."""

RUN_OF_TEST = ("run_id", "test_id", "rerun")
"""The key of one run of a test; it has a trace for each of its clusters."""


def test_run(
    trace: DataFrame, test: DataFrame, member: DataFrame, rebalance: DataFrame, verdict: DataFrame
) -> DataFrame:
    """Return mart/test_run."""
    is_known = F.col("outcome").isin("passed", "failed", "error")
    outcomes = test.select(
        "trace_id", "test_id", "rerun", F.when(is_known, F.col("outcome") != "passed").alias("failed")
    )
    counted = rebalance.groupBy("trace_id").agg(F.count(F.lit(1)).alias("n_rebalances"))
    runs = trace.select("trace_id", "run_id", "started_us").join(outcomes, "trace_id", "left")
    runs = runs.join(counted, "trace_id", "left").join(_clients(member, verdict), "trace_id", "left")
    return select_schema(runs.withColumn("n_rebalances", F.coalesce("n_rebalances", F.lit(0))), TEST_RUN)


def _clients(member: DataFrame, verdict: DataFrame) -> DataFrame:
    """Return the clients of each trace. A client took part if one of its members sent a request.

    A verdict that concerns several clients counts for each of them.
    """
    clients = member.where("client_software IS NOT NULL").select("trace_id", "group_id", *CLIENT).distinct()
    judged = verdict.where("check_id LIKE 'C%'").select("trace_id", "group_id", "subject", "status")
    is_subject = F.col("subject").isin(SEVERAL) | (F.col("subject") == F.concat_ws(" ", *CLIENT))
    status = F.coalesce(F.when(is_subject, F.col("status")), F.lit(NOT_APPLICABLE))
    worst = F.min_by(status, severity_rank(status))
    by_client = clients.join(judged, ["trace_id", "group_id"], "left").groupBy("trace_id", *CLIENT)
    statuses = by_client.agg(worst.alias("status"))
    return statuses.groupBy("trace_id").agg(F.sort_array(F.collect_list(F.struct(*CLIENT, "status"))).alias("clients"))


def flaky(test_run: DataFrame) -> DataFrame:
    """Return mart/flaky. Skipped runs and runs without an outcome do not count."""
    runs = (
        test_run.where("test_id IS NOT NULL AND failed IS NOT NULL")
        .groupBy(*RUN_OF_TEST)
        .agg(F.max("failed").alias("failed"), F.sum("n_rebalances").alias("n_rebalances"))
    )
    by_test = runs.groupBy("test_id").agg(
        F.count(F.lit(1)).alias("runs"),
        F.sum(F.col("failed").cast("long")).alias("failed_runs"),
        flake_rate(F.col("failed")).alias("flake_rate"),
        F.avg(F.when(~F.col("failed"), F.col("n_rebalances"))).alias("rebalances_passed"),
        F.avg(F.when(F.col("failed"), F.col("n_rebalances"))).alias("rebalances_failed"),
        F.avg("n_rebalances").alias("rebalances"),
    )
    return select_schema(by_test.withColumnRenamed("failed_runs", "failed"), FLAKY)


def client_matrix(test_run: DataFrame) -> DataFrame:
    """Return mart/client_matrix."""
    runs = test_run.withColumn("client", F.explode("clients")).select("*", "client.*")
    matrix = runs.groupBy(*CLIENT, F.col("test_id").alias("scenario")).agg(
        F.min_by("status", severity_rank(F.col("status"))).alias("status"),
        F.count(F.lit(1)).alias("runs"),
        F.coalesce(F.sum(F.col("failed").cast("long")), F.lit(0)).alias("failed_runs"),
        F.coalesce(flake_rate(F.col("failed")), F.lit(0.0)).alias("flake_rate"),
        F.avg("n_rebalances").alias("rebalances"),
        F.timestamp_micros(F.max("started_us")).alias("last_run"),
    )
    return select_schema(matrix.withColumnRenamed("failed_runs", "failed"), CLIENT_MATRIX)


def severity_rank(status: Column) -> Column:
    """Return the place of a status in WORST_FIRST, from 1."""
    return F.array_position(F.array(*map(F.lit, WORST_FIRST)), status)


def flake_rate(failed: Column) -> Column:
    """Return the share of runs in a group whose outcome differs from the majority; null if no outcome is known."""
    share = F.avg(failed.cast("double"))
    return F.least(share, 1 - share)
