"""mart/flaky: the outcomes of every test, and whether its failures coincide with rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import FLAKY
from .test_run import flake_rate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


RUN_OF_TEST = ("run_id", "test_id", "rerun")
"""The key of one run of a test; it has a trace for each of its clusters."""


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
