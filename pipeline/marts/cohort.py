"""Cohorts compared: what rebalances cost with one client version, commit or membership, and with another.

The rows that are compared are single rebalances, stops of single members, and traces; a difference of means comes with
its 95 % interval (Welch's, by the normal distribution: with fewer than some thirty rows it is too narrow).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BY = ("client_version", "commit", "membership")
"""What a cohort may have in common."""

OF_REBALANCE = ("join_ms", "sync_ms", "total_ms", "resume_ms", "straggler_wait_ms", "partitions_moved", "stickiness")
"""What is measured of each rebalance."""

OF_MEMBER = ("stopped_ms",)
"""What is measured of each member in a rebalance."""

REBALANCES = "rebalances_per_trace"

NORMAL_95 = 1.959964

SEVERAL, UNKNOWN = "several", "unknown"
"""Where a group has clients of several versions; where nothing is said."""


def measured(
    by: str, rebalance: DataFrame, member_downtime: DataFrame, member: DataFrame, trace: DataFrame
) -> DataFrame:
    """Rows of (cohort, metric, value, started_us); by one of BY. Rebalances without a cohort are in UNKNOWN."""
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
        .agg(F.coalesce(F.sum("n"), F.lit(0)).alias(REBALANCES))
    )
    return (
        _long(rounds, OF_REBALANCE)
        .unionByName(_long(stops, OF_MEMBER))
        .unionByName(_long(per_trace, (REBALANCES,)))
        .withColumn("cohort", F.coalesce("cohort", F.lit(UNKNOWN)))
    )


def _groups(by: str, member: DataFrame, trace: DataFrame) -> DataFrame:
    """The cohort of each group as a whole: of a mixed one SEVERAL, or mixed."""
    started = F.broadcast(trace.select("trace_id", "started_us", "commit"))
    asked = member.where("first_seq IS NOT NULL")
    one = {
        "client_version": _client(),
        "commit": F.lit(None).cast("string"),
        "membership": F.when(F.col("is_static"), "static").otherwise("dynamic"),
    }[by]
    several = "mixed" if by == "membership" else SEVERAL
    names = F.collect_set(one)
    groups = asked.groupBy("trace_id", "group_id").agg(
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


def compared(values: DataFrame, baseline: str) -> DataFrame:
    """Of each cohort and metric: n, mean, median, p95; how its mean differs from the baseline's, from low to high."""
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
