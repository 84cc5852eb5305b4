"""S01 to S03, S05 and S09: generations, leaders, and responses to JoinGroup.

A response changed by a fault rule is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import MEMBER
from .findings import FAIL, GROUP, PASS, call_text, findings, join_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .check_input import CheckInput

ID_REQUIRED_SINCE = 4
"""The version of JoinGroup from which a dynamic member must rejoin with an assigned id (KIP-394)."""


def generation_increments(inputs: CheckInput) -> DataFrame:
    """S01: each completed join barrier increments the generation by one."""
    before = Window.partitionBy(*GROUP).orderBy("seq")
    barriers = (
        inputs.states.withColumn("was", F.lag(F.struct("state_to", "generation")).over(before))
        .where("state_from = 'PreparingRebalance' AND state_to IN ('CompletingRebalance', 'Empty')")
        .where("was.state_to = 'PreparingRebalance'")
    )
    increments = F.col("generation") == F.col("was.generation") + 1
    text = join_text("after generation ", F.col("was.generation"), " came ", F.col("generation"))
    return findings(barriers, F.when(increments, PASS).otherwise(FAIL), "seq", text=text)


def single_leader(inputs: CheckInput) -> DataFrame:
    """S02: all members of a generation receive the same leader, which is one of them.

    A static leader that rejoined has a new member id (KIP-345), while the others still know the old one.
    """
    members = _formed_generations(inputs).where("leader IS NOT NULL")
    leaders = inputs.labels.select(*GROUP, F.col("member_id").alias("leader"), F.col("label").alias("leads"))
    named = members.join(inputs.labels, [*MEMBER]).join(leaders, [*GROUP, "leader"], "left")
    generations = named.groupBy(*GROUP, "life", "formed").agg(
        F.array_sort(F.collect_set(F.coalesce("leads", "leader"))).alias("leads"),
        F.collect_set("label").alias("labels"),
        F.min("seq").alias("seq"),
        F.max("answered_seq").alias("answered_seq"),
        F.max("is_whole").alias("is_whole"),
    )
    several, absent = F.size("leads") > 1, ~F.array_contains("labels", F.col("leads")[0]) & F.col("is_whole")
    text = F.when(
        several, join_text("generation ", F.col("formed"), " has the leaders ", F.array_join("leads", " and "))
    ).otherwise(join_text("generation ", F.col("formed"), " is led by ", F.col("leads")[0], ", which is not in it"))
    status = F.when(several | absent, FAIL).otherwise(PASS)
    return findings(generations, status, "seq", "answered_seq", text=text)


def _formed_generations(inputs: CheckInput) -> DataFrame:
    """Return the JoinGroups that led into a generation; `life` distinguishes generations with the same number.

    `is_whole`: the trace contains the start of that generation, and so all of its members.
    """
    joins = inputs.call.where("formed IS NOT NULL AND rule_id IS NULL")
    marks = inputs.states.where("state_to IN ('Dead', 'CompletingRebalance')").select(
        *GROUP, "seq", F.col("state_to").alias("mark"), F.col("generation").alias("started")
    )
    before = Window.partitionBy(*GROUP).orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    both = joins.withColumn("at", F.col("answered_seq")).unionByName(
        marks.withColumn("at", F.col("seq")), allowMissingColumns=True
    )
    return (
        both.withColumn("life", F.count(F.when(F.col("mark") == "Dead", 1)).over(before))
        .withColumn("started", F.last("started", ignorenulls=True).over(before))
        .withColumn("is_whole", F.coalesce(F.col("started") == F.col("formed"), F.lit(col=False)))
        .where("mark IS NULL")
    )


def member_list_for_leader_only(inputs: CheckInput) -> DataFrame:
    """S03: the member list goes to the leader only."""
    members = inputs.call.where("formed IS NOT NULL AND rule_id IS NULL AND leader IS NOT NULL")
    listed, leads = F.coalesce(F.size("members"), F.lit(0)) > 0, F.col("leader") == F.col("member_id")
    text = join_text(call_text(), ": it is told of the members, and ", F.col("leader"), " leads")
    # an empty list is not judged: a long one may have been omitted from the trace
    return findings(members.where(listed), F.when(leads, PASS).otherwise(FAIL), "seq", text=text, member="member_id")


def member_id_required_once(inputs: CheckInput) -> DataFrame:
    """S05: a JoinGroup without an id gets an id and an error (KIP-394); with an id, or before v4, it gets neither."""
    joins = inputs.call.where("api = 'JoinGroup' AND rule_id IS NULL AND error IN ('NONE', 'MEMBER_ID_REQUIRED')")
    requires_id = (
        (F.col("api_version") >= ID_REQUIRED_SINCE) & F.col("asked_as").isNull() & F.col("instance_id").isNull()
    )
    refused = F.col("error") == "MEMBER_ID_REQUIRED"
    text = join_text(call_text(), F.when(requires_id, ": without an id").otherwise(": it needs no id, or has one"))
    return findings(joins, F.when(requires_id == refused, PASS).otherwise(FAIL), "seq", text=text, member="member_id")


def protocol_supported_by_all(inputs: CheckInput) -> DataFrame:
    """S09: every member offers the selected assignor."""
    formed = inputs.call.where(
        "formed IS NOT NULL AND rule_id IS NULL AND protocol IS NOT NULL AND size(protocols) > 0"
    )
    offered = F.array_contains("protocols", F.col("protocol"))
    text = join_text(call_text(), ": ", F.col("protocol"), " was chosen, it offers ", F.array_join("protocols", ", "))
    return findings(formed, F.when(offered, PASS).otherwise(FAIL), "seq", text=text, member="member_id")
