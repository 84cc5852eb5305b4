"""silver/member and silver/group: who is who in a trace, and where each was last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import GROUP, MEMBER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("trace_id", "group_id", "member_id")


def group(event: DataFrame) -> DataFrame:
    """The groups that brokers tell of; what a client's log says is not the coordinator's."""
    timed = F.when(F.col("group_us").isNotNull(), F.col("seq"))
    lost = event.where("kind = 'dropped'").groupBy("trace_id").agg(F.sum("count").alias("lost"))
    found = (
        event.where("group_id IS NOT NULL AND kind <> 'client'")
        .groupBy("trace_id", "group_id")
        .agg(
            F.max(timed).alias("end_seq"),
            F.max_by("wall_us", timed).alias("end_wall_us"),
            F.max_by("group_us", timed).alias("end_us"),
        )
        .join(F.broadcast(lost), "trace_id", "left")
    )
    return shaped(found, GROUP)


def member(event: DataFrame, call: DataFrame) -> DataFrame:
    """The members that have asked something, or that a group tells of."""
    beats = F.col("api").isin("SyncGroup", "Heartbeat", "OffsetCommit")
    joins = F.col("api") == "JoinGroup"
    # what is said in the same words first: of texts the first and the last are found by sorting the rows
    words = ("client_id", "client_software", "client_version", "instance_id", "node", "conn_id")
    said = (
        call.where("member_id IS NOT NULL")
        .groupBy(*KEY, *words)
        .agg(
            F.min("seq").alias("first_seq"),
            F.max("seq").alias("last_seq"),
            F.max(F.when(beats, F.col("seq"))).alias("beat_seq"),
            F.max(F.when(joins, F.col("seq"))).alias("join_seq"),
            F.min(F.when(F.col("formed").isNotNull(), F.col("seq"))).alias("formed_seq"),
        )
    )
    asked = said.groupBy(*KEY).agg(
        F.min("first_seq").alias("first_seq"),
        F.max(F.struct(F.col("last_seq").alias("seq"), "node", "conn_id")).alias("last"),
        F.min(F.when(_says("client_software"), F.struct("first_seq", "client_software", "client_version"))).alias("by"),
        F.max(F.when(_says("instance_id"), F.struct("last_seq", "instance_id"))).alias("asked"),
        F.max(F.when(F.col("beat_seq").isNotNull(), F.struct("beat_seq", "client_id"))).alias("beats"),
        F.max(F.when(F.col("join_seq").isNotNull(), F.struct("join_seq", "client_id"))).alias("joins"),
        F.min("formed_seq").alias("formed_seq"),
    )
    told = (
        event.where("kind NOT IN ('request', 'response', 'client') AND group_id IS NOT NULL")
        .where(F.col("member_id").isNotNull() & _says("instance_id"))
        .groupBy(*KEY)
        .agg(F.max(F.struct("seq", "instance_id")).alias("told"))
    )
    instance = F.coalesce("asked.instance_id", "told.instance_id")
    found = asked.join(told, [*KEY], "full").select(
        *KEY,
        F.coalesce(instance, "member_id").alias("member"),
        instance.isNotNull().alias("is_static"),
        F.coalesce("beats.client_id", "joins.client_id").alias("client_id"),
        F.col("by.client_software").alias("client_software"),
        F.col("by.client_version").alias("client_version"),
        "first_seq",
        F.col("last.seq").alias("last_seq"),
        F.col("last.node").alias("node"),
        F.col("last.conn_id").alias("conn_id"),
        "formed_seq",
    )
    return shaped(found.join(closings(event), ["trace_id", "node", "conn_id"], "left"), MEMBER)


def closings(event: DataFrame) -> DataFrame:
    """Where each connection was closed: `closed_seq`, and `by_broker`."""
    last = F.max(F.struct("seq", "reason"))
    return (
        event.where("kind = 'conn' AND change = 'closed'")
        .groupBy("trace_id", "node", "conn_id")
        .agg(last.alias("last"))
        .select(
            "trace_id",
            "node",
            "conn_id",
            F.col("last.seq").alias("closed_seq"),
            F.col("last.reason").isNotNull().alias("by_broker"),
        )
    )


def _says(name: str) -> Column:
    return F.col(name) != ""
