"""gold/client_join: what logs of clients tell of rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import whose
from ..schema import CLIENT_JOIN
from .rebalance import sub_cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHO = ("trace_id", "group_id", "client_id")

_STEPS = ("joining", "joined", "assigned", "left")


def client_join(event: DataFrame, trace: DataFrame) -> DataFrame:
    """One row for each time a client joined: from its first JoinGroup to its assignment, as far as it came.

    The JoinGroup that is repeated with the member id that was given (KIP-394) is the same time; so is one that is
    repeated because it was refused. The first has the cause `member_join`; the others what the client said before, by
    the kinds of gold/rebalance's `sub_cause`, and null if it said nothing.
    """
    told = event.where(F.col("kind") == "client").withColumn("client_id", F.coalesce("client_id", F.lit("")))
    in_order = Window.partitionBy(*_WHO).orderBy("seq")
    steps = F.when(F.col("change").isin(*_STEPS), F.col("change"))
    before = F.last(steps, ignorenulls=True).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    begins = (F.col("change") == "joining") & (F.coalesce(before, F.lit("")) != "joining")
    told = told.withColumn("begins", begins)
    # the reason is told before it begins
    why = F.when(
        F.col("change").isin("rejoins", "joined", "left"),
        F.struct(F.when(F.col("change") == "rejoins", F.col("reason")).alias("reason")),
    )
    told = told.withColumn("why", F.last(why, ignorenulls=True).over(in_order))
    told = told.withColumn("number", F.sum(F.col("begins").cast("int")).over(in_order)).where("number > 0")
    joins = told.groupBy(*_WHO, "number").agg(
        F.first("source").alias("source"),
        F.min("seq").alias("start_seq"),
        F.min_by("wall_us", "seq").alias("start_us"),
        F.min_by("why.reason", "seq").alias("reason"),
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
    return whose(joins, trace, CLIENT_JOIN)
