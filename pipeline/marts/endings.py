"""How runs of tests ended, and what flaky means: for the marts that compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RUN_OF_TEST = ("run_id", "test_id", "rerun")
"""What makes one run of a test; it has a trace for each of its clusters."""


def with_rebalances(traces: DataFrame, rebalance: DataFrame) -> DataFrame:
    """The traces, each with the number of its rebalances: `n_rebalances`."""
    counted = rebalance.groupBy("trace_id").agg(F.count(F.lit(1)).alias("n_rebalances"))
    return traces.join(counted, "trace_id", "left").withColumn("n_rebalances", F.coalesce("n_rebalances", F.lit(0)))


def failed() -> Column:
    """Whether a run failed; null if it was skipped, or its trace does not say how it ended."""
    return F.when(F.col("outcome").isin("passed", "failed", "error"), F.col("outcome") != "passed")


def flake_rate(failed: Column) -> Column:
    """Of the runs in a group: the share of those that ended otherwise than most; null if of none the end is known."""
    share = F.avg(failed.cast("double"))
    return F.least(share, 1 - share)
