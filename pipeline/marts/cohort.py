"""Comparison of cohorts: the costs of rebalances by client version, commit or membership.

The samples are single rebalances, stops of single members, and traces. A difference of means has its 95 % interval
(Welch's, with the normal distribution: with fewer than about thirty rows it is too narrow).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BY = ("client_version", "commit", "membership")
"""The properties that define cohorts."""

REBALANCE_METRICS = (
    "join_ms",
    "sync_ms",
    "total_ms",
    "resume_ms",
    "straggler_wait_ms",
    "partitions_moved",
    "stickiness",
)
"""Metrics of each rebalance."""

MEMBER_METRICS = ("stopped_ms",)
"""Metrics of each member in a rebalance."""

REBALANCES_PER_TRACE = "rebalances_per_trace"

NORMAL_95 = 1.959964

SEVERAL, UNKNOWN = "several", "unknown"
"""Cohorts of groups with several client versions, and of groups without the information."""


def metric_values(
    by: str, rebalance: DataFrame, member_downtime: DataFrame, member: DataFrame, trace: DataFrame
) -> DataFrame:
    """Return rows of (cohort, metric, value, started_us) by one of BY. Rebalances without a cohort are in UNKNOWN."""
    groups = _groups(by, member, trace)
    rounds = rebalance.join(groups, ["trace_id", "group_id"], "left")
    stops = member_downtime.join(groups, ["trace_id", "group_id"], "left")
    whole = groups
    if by == "membership":
        rounds, stops = (frame.withColumn("cohort", F.col("membership")) for frame in (rounds, stops))
    elif by == "client_version":
        stops = stops.withColumn("cohort", _client())
    counted = rebalance.groupBy("trace_id", "group_id").agg(F.count(F.lit(1)).alias("n"))
    per_trace = (
        whole.join(counted, ["trace_id", "group_id"], "left")
        .groupBy("trace_id", "cohort", "started_us")
        .agg(F.coalesce(F.sum("n"), F.lit(0)).alias(REBALANCES_PER_TRACE))
    )
    return (
        _long(rounds, REBALANCE_METRICS)
        .unionByName(_long(stops, MEMBER_METRICS))
        .unionByName(_long(per_trace, (REBALANCES_PER_TRACE,)))
        .withColumn("cohort", F.coalesce("cohort", F.lit(UNKNOWN)))
    )


def _groups(by: str, member: DataFrame, trace: DataFrame) -> DataFrame:
    """Return the cohort of each group; a group with several is in SEVERAL, or mixed."""
    started = F.broadcast(trace.select("trace_id", "started_us", "commit"))
    requesting = member.where("first_seq IS NOT NULL")
    one = {
        "client_version": _client(),
        "commit": F.lit(None).cast("string"),
        "membership": F.when(F.col("is_static"), "static").otherwise("dynamic"),
    }[by]
    several = "mixed" if by == "membership" else SEVERAL
    names = F.collect_set(one)
    groups = requesting.groupBy("trace_id", "group_id").agg(
        F.when(F.size(names) > 1, several).otherwise(F.max(one)).alias("cohort")
    )
    cohort = F.col("commit") if by == "commit" else F.col("cohort")
    return groups.join(started, "trace_id").select("trace_id", "group_id", "started_us", cohort.alias("cohort"))


def _client() -> Column:
    named = F.concat_ws(" ", "client_software", "client_version")
    return F.when(F.col("client_software").isNotNull(), named)


def _long(frame: DataFrame, metrics: tuple[str, ...]) -> DataFrame:
    rows = F.array(
        *(F.struct(F.lit(name).alias("metric"), F.col(name).cast("double").alias("value")) for name in metrics)
    )
    return (
        frame.select("cohort", "started_us", F.explode(rows).alias("row"))
        .select("cohort", "row.metric", "row.value", "started_us")
        .where("value IS NOT NULL")
    )


def compare_cohorts(values: DataFrame, baseline: str) -> DataFrame:
    """Return n, mean, median, p95 and the difference to the baseline, by cohort and metric."""
    cohorts = values.groupBy("metric", "cohort").agg(
        F.count("value").alias("n"),
        F.avg("value").alias("mean"),
        F.percentile("value", 0.5).alias("median"),
        F.percentile("value", 0.95).alias("p95"),
        F.var_samp("value").alias("variance"),
    )
    base = cohorts.where(F.col("cohort") == baseline).select(
        "metric",
        F.col("n").alias("base_n"),
        F.col("mean").alias("base_mean"),
        F.col("variance").alias("base_variance"),
    )
    difference = F.col("mean") - F.col("base_mean")
    error = F.sqrt(F.col("variance") / F.col("n") + F.col("base_variance") / F.col("base_n"))
    is_other = F.col("cohort") != baseline
    return (
        cohorts.join(base, "metric", "left")
        .withColumn("difference", F.when(is_other, difference))
        .withColumn("low", F.when(is_other, difference - NORMAL_95 * error))
        .withColumn("high", F.when(is_other, difference + NORMAL_95 * error))
        .select("metric", "cohort", "n", "mean", "median", "p95", "difference", "low", "high")
        .orderBy("metric", F.col("cohort") != baseline, "cohort")
    )
