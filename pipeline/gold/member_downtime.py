"""gold/member_downtime: the time for which a rebalance stopped each member, and its partitions before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns
from ..silver.group_columns import GROUP_KEY, OK, ROUND_KEY
from ..silver.round import with_rebalance_no

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def member_downtime(
    call: DataFrame, round_: DataFrame, arrival: DataFrame, move: DataFrame, rebalance: DataFrame, trace: DataFrame
) -> DataFrame:
    """Return gold/member_downtime: silver/arrival, with the partitions each member kept, received and lost."""
    members = (
        arrival.join(rebalance.select(*ROUND_KEY, "mode", "start_seq", "outcome"), [*ROUND_KEY])
        .join(_partition_counts(move), [*ROUND_KEY, "member"], "left")
        .join(_committed(call, arrival, round_), [*ROUND_KEY, "member_id"], "left")
    )
    return with_trace_columns(_columns(members), trace, schema.MEMBER_DOWNTIME)


def _partition_counts(move: DataFrame) -> DataFrame:
    """Return the numbers of partitions that each member kept, received and lost."""
    kept = F.col("had") & (F.col("old_member") == F.col("new_member"))
    received = F.struct(
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
    # an unassigned partition has no new member, a new partition no old one
    is_lost = F.col("had") & ~F.coalesce(F.col("old_member") == F.col("new_member"), F.lit(col=False))
    sides = F.array_compact(F.array(F.when(F.col("new_member").isNotNull(), received), F.when(is_lost, lost)))
    return (
        move.select(*ROUND_KEY, F.explode(sides).alias("side"))
        .select(*ROUND_KEY, "side.*")
        .groupBy(*ROUND_KEY, "member")
        .agg(*(F.sum(name).alias(name) for name in ("kept_n", "assigned_n", "revoked_n")))
    )


def _committed(call: DataFrame, arrival: DataFrame, round_: DataFrame) -> DataFrame:
    """Return the members that committed between the start of a rebalance and their JoinGroup."""
    commits = call.where((F.col("api") == "OffsetCommit") & (F.col("error") == OK)).select(
        *GROUP_KEY, "member_id", "seq"
    )
    return (
        with_rebalance_no(commits, round_)
        .join(arrival.select(*ROUND_KEY, "member_id", "joined_seq"), [*ROUND_KEY, "member_id"])
        .where(F.col("seq") < F.col("joined_seq"))
        .select(*ROUND_KEY, "member_id")
        .distinct()
        .withColumn("committed", F.lit(col=True))
    )


def _columns(members: DataFrame) -> DataFrame:
    completed = F.col("outcome") == "completed"
    waited = (F.col("synced_us") - F.col("joined_us")) / 1000
    keeps_all = (F.col("mode") == "cooperative") & (F.col("revoked_n") == 0)
    must_commit = (F.col("revoked_n") > 0) & (F.col("joined_seq") > F.col("start_seq"))
    held = {name: F.when(completed, F.coalesce(name, F.lit(0))) for name in ("kept_n", "assigned_n", "revoked_n")}
    return (
        members.withColumns(held)
        .withColumn("membership", F.when(F.col("instance_id").isNotNull(), "static").otherwise("dynamic"))
        .withColumn("waited_ms", waited)
        .withColumn("stopped_ms", F.when(keeps_all, 0.0).otherwise(F.col("waited_ms")))
        .withColumn("commit_before_revoke", F.when(must_commit, F.coalesce("committed", F.lit(col=False))))
    )
