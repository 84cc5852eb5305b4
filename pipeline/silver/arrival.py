"""silver/arrival: the members that joined in each rebalance, with their waiting times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import select_schema
from .group_columns import GROUP_KEY, OK, ROUND_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLIENT = ("client_id", "client_software", "client_version")


def arrival(call: DataFrame, round_: DataFrame) -> DataFrame:
    """Return silver/arrival: the JoinGroups whose responses name the generation of a rebalance.

    Only JoinGroups after the previous join barrier count: a static member that rejoins later receives the same
    generation.
    """
    formed = round_.where(F.col("join_seq").isNotNull()).select(
        *ROUND_KEY, "joined_before", "join_seq", F.col("gen_after").alias("formed")
    )
    size = F.size("members")
    joined = (
        call.where((F.col("api") == "JoinGroup") & (F.col("error") == OK))
        .join(formed, [*GROUP_KEY, "formed"])
        .where((F.col("seq") > F.col("joined_before")) & (F.col("seq") < F.col("join_seq")))
        .withColumn("member", F.coalesce("instance_id", "member_id"))
        .groupBy(*ROUND_KEY, "member_id")
        .agg(
            F.min(F.struct("seq", "group_us")).alias("first"),
            F.max(F.struct("seq", "group_us", "member", "instance_id", *CLIENT)).alias("last"),
            F.max("protocol").alias("protocol"),
            F.coalesce(F.max(F.size("owned") > 0), F.lit(col=False)).alias("owns"),
            F.min(F.when(size > 0, F.struct("seq", "members"))).getField("members").alias("members"),
        )
    )
    arrivals = joined.select(
        *(*ROUND_KEY, "member_id", "protocol", "owns", "members"),
        F.col("first.seq").alias("joined_seq"),
        F.col("first.group_us").alias("joined_us"),
        F.col("last.seq").alias("last_joined_seq"),
        F.col("last.group_us").alias("last_joined_us"),
        *(f"last.{name}" for name in ("member", "instance_id", *CLIENT)),
    )
    return select_schema(arrivals.join(_synced(call, formed), [*ROUND_KEY, "member_id"], "left"), schema.ARRIVAL)


def _synced(call: DataFrame, formed: DataFrame) -> DataFrame:
    return (
        call.where((F.col("api") == "SyncGroup") & F.col("answered_seq").isNotNull())
        .join(formed.withColumnRenamed("formed", "generation"), [*GROUP_KEY, "generation"])
        .where(F.col("seq") > F.col("join_seq"))
        .groupBy(*ROUND_KEY, "member_id")
        .agg(F.min(F.struct("seq", "answered_group_us")).getField("answered_group_us").alias("synced_us"))
    )
