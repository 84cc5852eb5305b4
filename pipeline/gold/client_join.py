"""gold/client_join: rebalances as client logs describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.emulator.trace.vocabulary import REASON_MAX, SUB_CAUSES

from ..frames import with_trace_columns
from ..schema import CLIENT_JOIN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CLIENT_KEY = ("trace_id", "group_id", "client_id")

_STEPS = ("joining", "joined", "assigned", "left")


def client_join(event: DataFrame, trace: DataFrame) -> DataFrame:
    """Return one row for each join of a client, from its first JoinGroup to its assignment.

    A JoinGroup repeated with an assigned member id (KIP-394), or after an error, belongs to the same join. The cause of
    the first join is `member_join`. That of the others is the `sub_cause` of the reason that the client logged before;
    null if it logged none.
    """
    events = event.where(F.col("kind") == "client").withColumn("client_id", F.coalesce("client_id", F.lit("")))
    in_order = Window.partitionBy(*_CLIENT_KEY).orderBy("seq")
    steps = F.when(F.col("change").isin(*_STEPS), F.col("change"))
    before = F.last(steps, ignorenulls=True).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    starts = (F.col("change") == "joining") & (F.coalesce(before, F.lit("")) != "joining")
    events = events.withColumn("starts", starts)
    # the reason precedes the join
    reason = F.when(
        F.col("change").isin("rejoins", "joined", "left"),
        F.struct(F.when(F.col("change") == "rejoins", F.col("reason")).alias("reason")),
    )
    events = events.withColumn("last_reason", F.last(reason, ignorenulls=True).over(in_order))
    events = events.withColumn("number", F.sum(F.col("starts").cast("int")).over(in_order)).where("number > 0")
    joins = events.groupBy(*_CLIENT_KEY, "number").agg(
        F.first("source").alias("source"),
        F.min("seq").alias("start_seq"),
        F.min_by("wall_us", "seq").alias("start_us"),
        F.min_by("last_reason.reason", "seq").alias("reason"),
        F.max("member_id").alias("member_id"),
        F.max(F.when(F.col("change") == "joined", F.col("generation"))).alias("generation"),
        F.min(F.when(F.col("change") == "joined", F.col("wall_us"))).alias("joined_us"),
        F.min(F.when(F.col("change") == "assigned", F.col("wall_us"))).alias("assigned_us"),
    )
    cause = F.when(F.col("number") == 1, "member_join").otherwise(sub_cause("reason"))
    joins = joins.withColumns(
        {
            "client_id": F.nullif("client_id", F.lit("")),
            "started_at": F.timestamp_micros("start_us"),
            "cause": cause,
            "join_ms": (F.col("joined_us") - F.col("start_us")) / 1000,
            "total_ms": (F.col("assigned_us") - F.col("start_us")) / 1000,
        }
    )
    return with_trace_columns(joins, trace, CLIENT_JOIN)


def sub_cause(client_reason: str) -> Column:
    """Return the category of a client's own reason (KIP-800); null without a reason, "other" if it is unknown."""
    text = F.substring(client_reason, 1, REASON_MAX)
    kind = F.when(F.coalesce(text, F.lit("")) == "", F.lit(None).cast("string"))
    for name, pattern in SUB_CAUSES:
        kind = kind.when(text.rlike(f"(?i){pattern}"), name)
    return kind.otherwise("other")
