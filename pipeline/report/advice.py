"""The queries on which a platform team acts: changes since last week, origins of storms, gains of other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .queries import REBALANCE_KEY, ROWS_MAX, count_if, member_name, scope

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WEEK_S = 7 * 86_400

GROUP = ["scope", "group_id"]


def weeks(rebalance: DataFrame, since_s: int, until_s: int) -> DataFrame:
    """Compare the seven days before `until_s` with the seven days before them, by group; the greatest changes first.

    An eager group stood still at least from its barriers to the assignments, `least_ms`, and at most for its whole
    rebalances, `most_ms`. There is no row unless the input began, at `since_s`, before the last seven days.
    """
    age = F.floor((F.lit(until_s) - F.unix_seconds("started_at")) / WEEK_S)
    least_ms = F.when(F.coalesce("mode", F.lit("eager")) == "eager", F.col("sync_ms")).otherwise(0.0)
    weeks_ = (("now", age == 0), ("before", age == 1))
    return (
        rebalance.where((age < 2) & F.lit(since_s < until_s - WEEK_S))  # noqa: PLR2004 - two weeks
        .groupBy(scope(), "group_id")
        .agg(
            *(count_if(is_in).alias(f"rebalances_{week}") for week, is_in in weeks_),
            *(_sum_if(is_in, least_ms).alias(f"least_ms_{week}") for week, is_in in weeks_),
            *(_sum_if(is_in, F.col("total_ms")).alias(f"most_ms_{week}") for week, is_in in weeks_),
        )
        .orderBy(F.desc(F.abs(F.col("most_ms_now") - F.col("most_ms_before"))), *GROUP)
        .limit(ROWS_MAX)
    )


def storms(rebalance: DataFrame, downtime: DataFrame) -> DataFrame:
    """Return the storms: rebalances in quick succession, such as those of a deployment, with their costs.

    `first_member` triggered the first rebalance. Its client id or `group.instance.id` may name the deployment or host.
    """
    stopped = downtime.groupBy(*REBALANCE_KEY).agg(F.sum("stopped_ms").alias("stopped_ms"))
    ended_us = F.max(F.col("t_start_us") + F.col("total_ms") * 1000)
    return (
        rebalance.where("storm_id is not null")
        .join(stopped, [*REBALANCE_KEY], "left")
        .groupBy("storm_id", "trace_id", scope(), "group_id")
        .agg(
            F.count("*").alias("rebalances"),
            F.min("start_seq").alias("start_seq"),
            ((ended_us - F.min("t_start_us")) / 1000).alias("took_ms"),
            (F.sum("stopped_ms") / 1000).alias("stopped_s"),
            F.min_by(member_name("trigger_member"), "start_seq").alias("first_member"),
            F.min_by("cause", "start_seq").alias("first_cause"),
            F.sort_array(F.collect_set("cause")).alias("causes"),
        )
        .orderBy(F.desc_nulls_last("stopped_s"), F.desc("rebalances"), "storm_id")
        .limit(ROWS_MAX)
    )


def gains(rebalance: DataFrame, downtime: DataFrame) -> DataFrame:
    """Return what classic groups would have gained from static membership, and from a cooperative assignor.

    In the laboratory (docs/lab.md) a rolling restart of static members costs no rebalance, and a cooperative rebalance
    stops no member. So each dynamic member that left and returned caused at most two rebalances in vain: `static_n`,
    with their mean duration `static_ms`. Members of eager groups that kept their partitions stopped in vain for
    `cooperative_least_ms`; with those that lost some it is `cooperative_most_ms`. Both are null for logs of brokers.
    """
    is_dynamic = (F.coalesce("type", F.lit("classic")) == "classic") & (F.col("membership") == "dynamic")
    left, joined = (is_dynamic & (F.col("cause") == cause) for cause in ("member_leave", "member_join"))
    returns = rebalance.groupBy(scope(), "group_id").agg(
        F.count("*").alias("rebalances"),
        (2 * F.least(count_if(left), count_if(joined))).alias("static_n"),
        F.avg(F.when(left | joined, F.col("total_ms"))).alias("mean_ms"),
    )
    owned = downtime.where("mode = 'eager' and kept_n + revoked_n > 0")
    stops = owned.groupBy(scope(), "group_id").agg(
        _sum_if(F.col("revoked_n") == 0, F.col("stopped_ms")).alias("cooperative_least_ms"),
        F.sum("stopped_ms").alias("cooperative_most_ms"),
    )
    return (
        returns.join(stops, GROUP, "left")
        .withColumn("static_ms", F.col("static_n") * F.coalesce("mean_ms", F.lit(0.0)))
        .drop("mean_ms")
        .where("static_n > 0 or cooperative_most_ms > 0")
        .orderBy(F.desc(F.col("static_ms") + F.coalesce("cooperative_most_ms", F.lit(0.0))), *GROUP)
        .limit(ROWS_MAX)
    )


def _sum_if(when: Column, value: Column) -> Column:
    return F.coalesce(F.sum(F.when(when, value)), F.lit(0.0))
