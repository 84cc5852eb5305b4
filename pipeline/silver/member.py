"""silver/member and silver/group: the members of each trace, and their last activity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import GROUP, MEMBER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("trace_id", "group_id", "member_id")


def group(event: DataFrame) -> DataFrame:
    """Return the groups in coordinators' events; client logs do not describe the coordinator."""
    timed = F.when(F.col("group_us").isNotNull(), F.col("seq"))
    lost = event.where("kind = 'dropped'").groupBy("trace_id").agg(F.sum("count").alias("lost"))
    groups = (
        event.where("group_id IS NOT NULL AND kind <> 'client'")
        .groupBy("trace_id", "group_id")
        .agg(
            F.max(timed).alias("end_seq"),
            F.max_by("wall_us", timed).alias("end_wall_us"),
            F.max_by("group_us", timed).alias("end_us"),
        )
        .join(F.broadcast(lost), "trace_id", "left")
    )
    return select_schema(groups, GROUP)


def member(event: DataFrame, call: DataFrame) -> DataFrame:
    """Return the members that sent a request, or that an event of the group names."""
    is_in_group = F.col("api").isin("SyncGroup", "Heartbeat", "OffsetCommit")
    is_join = F.col("api") == "JoinGroup"
    # aggregate rows with equal strings first: the minimum and maximum of strings would sort the rows
    strings = ("client_id", "client_software", "client_version", "instance_id", "node", "conn_id")
    by_strings = (
        call.where("member_id IS NOT NULL")
        .groupBy(*KEY, *strings)
        .agg(
            F.min("seq").alias("first_seq"),
            F.max("seq").alias("last_seq"),
            F.max(F.when(is_in_group, F.col("seq"))).alias("in_group_seq"),
            F.max(F.when(is_join, F.col("seq"))).alias("join_seq"),
            F.min(F.when(F.col("formed").isNotNull(), F.col("seq"))).alias("formed_seq"),
        )
    )
    requested = by_strings.groupBy(*KEY).agg(
        F.min("first_seq").alias("first_seq"),
        F.max(F.struct(F.col("last_seq").alias("seq"), "node", "conn_id")).alias("last"),
        F.min(F.when(_is_set("client_software"), F.struct("first_seq", "client_software", "client_version"))).alias(
            "by"
        ),
        F.max(F.when(_is_set("instance_id"), F.struct("last_seq", "instance_id"))).alias("request"),
        F.max(F.when(F.col("in_group_seq").isNotNull(), F.struct("in_group_seq", "client_id"))).alias("in_group"),
        F.max(F.when(F.col("join_seq").isNotNull(), F.struct("join_seq", "client_id"))).alias("joins"),
        F.min("formed_seq").alias("formed_seq"),
    )
    named = (
        event.where("kind NOT IN ('request', 'response', 'client') AND group_id IS NOT NULL")
        .where(F.col("member_id").isNotNull() & _is_set("instance_id"))
        .groupBy(*KEY)
        .agg(F.max(F.struct("seq", "instance_id")).alias("event"))
    )
    instance = F.coalesce("request.instance_id", "event.instance_id")
    members = requested.join(named, [*KEY], "full").select(
        *KEY,
        F.coalesce(instance, "member_id").alias("member"),
        instance.isNotNull().alias("is_static"),
        F.coalesce("in_group.client_id", "joins.client_id").alias("client_id"),
        F.col("by.client_software").alias("client_software"),
        F.col("by.client_version").alias("client_version"),
        "first_seq",
        F.col("last.seq").alias("last_seq"),
        F.col("last.node").alias("node"),
        F.col("last.conn_id").alias("conn_id"),
        "formed_seq",
    )
    return select_schema(members.join(closings(event), ["trace_id", "node", "conn_id"], "left"), MEMBER)


def closings(event: DataFrame) -> DataFrame:
    """Return the end of each connection: `closed_seq`, and `by_broker`."""
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


def _is_set(name: str) -> Column:
    return F.col(name) != ""
