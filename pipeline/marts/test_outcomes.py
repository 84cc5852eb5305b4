"""Outcomes of test runs, and their flake rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RUN_OF_TEST = ("run_id", "test_id", "rerun")
"""The key of one run of a test; it has a trace for each of its clusters."""


def with_rebalances(traces: DataFrame, rebalance: DataFrame) -> DataFrame:
    """Add the number of rebalances to each trace: `n_rebalances`."""
    counted = rebalance.groupBy("trace_id").agg(F.count(F.lit(1)).alias("n_rebalances"))
    return traces.join(counted, "trace_id", "left").withColumn("n_rebalances", F.coalesce("n_rebalances", F.lit(0)))


def failed() -> Column:
    """Return whether a run failed; null if it was skipped, or its outcome is unknown."""
    return F.when(F.col("outcome").isin("passed", "failed", "error"), F.col("outcome") != "passed")


def flake_rate(failed: Column) -> Column:
    """Return the share of runs in a group whose outcome differs from the majority; null if no outcome is known."""
    share = F.avg(failed.cast("double"))
    return F.least(share, 1 - share)
