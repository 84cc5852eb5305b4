"""gold/member_downtime: how long each member was stopped by a rebalance, and what it lost and got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import GROUP, OK, ROUND
from ..silver.round import numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def member_downtime(
    call: DataFrame, round_: DataFrame, arrival: DataFrame, move: DataFrame, rebalance: DataFrame, trace: DataFrame
) -> DataFrame:
    """gold/member_downtime: silver/arrival, with what each has lost and got."""
    found = (
        arrival.join(rebalance.select(*ROUND, "mode", "start_seq", "outcome"), [*ROUND])
        .join(_held(move), [*ROUND, "member"], "left")
        .join(_committed(call, arrival, round_), [*ROUND, "member_id"], "left")
    )
    return whose(_columns(found), trace, schema.MEMBER_DOWNTIME)


def _held(move: DataFrame) -> DataFrame:
    """How many partitions each member kept, got and lost."""
    kept = F.col("had") & (F.col("old_member") == F.col("new_member"))
    got = F.struct(
        F.col("new_member").alias("member"),
        kept.cast("int").alias("kept_n"),
        (~kept).cast("int").alias("assigned_n"),
        F.lit(0).alias("revoked_n"),
    )
    lost = F.struct(
        F.col("old_member").alias("member"),
        F.lit(0).alias("kept_n"),
        F.lit(0).alias("assigned_n"),
        F.lit(1).alias("revoked_n"),
    )
    # of a partition that is left over there is no new member, of one that nobody had no old one
    is_lost = F.col("had") & ~F.coalesce(F.col("old_member") == F.col("new_member"), F.lit(col=False))
    sides = F.array_compact(F.array(F.when(F.col("new_member").isNotNull(), got), F.when(is_lost, lost)))
    return (
        move.select(*ROUND, F.explode(sides).alias("side"))
        .select(*ROUND, "side.*")
        .groupBy(*ROUND, "member")
        .agg(*(F.sum(name).alias(name) for name in ("kept_n", "assigned_n", "revoked_n")))
    )


def _committed(call: DataFrame, arrival: DataFrame, round_: DataFrame) -> DataFrame:
    """Who has committed between the begin of a rebalance and its JoinGroup."""
    commits = call.where((F.col("api") == "OffsetCommit") & (F.col("error") == OK)).select(*GROUP, "member_id", "seq")
    return (
        numbered(commits, round_)
        .join(arrival.select(*ROUND, "member_id", "joined_seq"), [*ROUND, "member_id"])
        .where(F.col("seq") < F.col("joined_seq"))
        .select(*ROUND, "member_id")
        .distinct()
        .withColumn("committed", F.lit(col=True))
    )


def _columns(found: DataFrame) -> DataFrame:
    completed = F.col("outcome") == "completed"
    waited = (F.col("synced_us") - F.col("joined_us")) / 1000
    keeps_all = (F.col("mode") == "cooperative") & (F.col("revoked_n") == 0)
    told = (F.col("revoked_n") > 0) & (F.col("joined_seq") > F.col("start_seq"))
    held = {name: F.when(completed, F.coalesce(name, F.lit(0))) for name in ("kept_n", "assigned_n", "revoked_n")}
    return (
        found.withColumns(held)
        .withColumn("membership", F.when(F.col("instance_id").isNotNull(), "static").otherwise("dynamic"))
        .withColumn("waited_ms", waited)
        .withColumn("stopped_ms", F.when(keeps_all, 0.0).otherwise(F.col("waited_ms")))
        .withColumn("commit_before_revoke", F.when(told, F.coalesce("committed", F.lit(col=False))))
    )
