"""S01 to S03, S05 and S09: generations, leaders, and what a JoinGroup is answered.

What a rule of the test has acted on is not the coordinator's, and not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .judging import FAIL, GROUP, PASS, found, said, texts
from .story import MEMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .story import Story

ID_REQUIRED_SINCE = 4
"""The version of JoinGroup from which on a dynamic member is first sent off with an id (KIP-394)."""


def one_more_each_time(story: Story) -> DataFrame:
    """S01. Every join barrier that falls makes the next generation: the one before and 1."""
    before = Window.partitionBy(*GROUP).orderBy("seq")
    barriers = (
        story.states.withColumn("was", F.lag(F.struct("state_to", "generation")).over(before))
        .where("state_from = 'PreparingRebalance' AND state_to IN ('CompletingRebalance', 'Empty')")
        .where("was.state_to = 'PreparingRebalance'")
    )
    right = F.col("generation") == F.col("was.generation") + 1
    text = texts("after generation ", F.col("was.generation"), " came ", F.col("generation"))
    return found(barriers, F.when(right, PASS).otherwise(FAIL), "seq", text=text)


def one_leader(story: Story) -> DataFrame:
    """S02. Everybody in a generation is told of the same leader, which is one of them.

    A static leader that is back has another member id (KIP-345): the others know it by the one before.
    """
    told = _formed(story).where("leader IS NOT NULL")
    leaders = story.labels.select(*GROUP, F.col("member_id").alias("leader"), F.col("label").alias("leads"))
    named = told.join(story.labels, [*MEMBER]).join(leaders, [*GROUP, "leader"], "left")
    generations = named.groupBy(*GROUP, "life", "formed").agg(
        F.array_sort(F.collect_set(F.coalesce("leads", "leader"))).alias("leads"),
        F.collect_set("label").alias("labels"),
        F.min("seq").alias("seq"),
        F.max("answered_seq").alias("answered_seq"),
        F.max("is_whole").alias("is_whole"),
    )
    several, absent = F.size("leads") > 1, ~F.array_contains("labels", F.col("leads")[0]) & F.col("is_whole")
    text = F.when(
        several, texts("generation ", F.col("formed"), " has the leaders ", F.array_join("leads", " and "))
    ).otherwise(texts("generation ", F.col("formed"), " is led by ", F.col("leads")[0], ", which is not in it"))
    status = F.when(several | absent, FAIL).otherwise(PASS)
    return found(generations, status, "seq", "answered_seq", text=text)


def _formed(story: Story) -> DataFrame:
    """The JoinGroups that brought their members into a generation; `life` tells generations of one number apart.

    `is_whole`: the trace has seen that generation begin, so all its members.
    """
    joins = story.call.where("formed IS NOT NULL AND rule_id IS NULL")
    marks = story.states.where("state_to IN ('Dead', 'CompletingRebalance')").select(
        *GROUP, "seq", F.col("state_to").alias("mark"), F.col("generation").alias("begun")
    )
    before = Window.partitionBy(*GROUP).orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    both = joins.withColumn("at", F.col("answered_seq")).unionByName(
        marks.withColumn("at", F.col("seq")), allowMissingColumns=True
    )
    return (
        both.withColumn("life", F.count(F.when(F.col("mark") == "Dead", 1)).over(before))
        .withColumn("begun", F.last("begun", ignorenulls=True).over(before))
        .withColumn("is_whole", F.coalesce(F.col("begun") == F.col("formed"), F.lit(col=False)))
        .where("mark IS NULL")
    )


def members_for_the_leader(story: Story) -> DataFrame:
    """S03. The list of the members goes to the leader and to nobody else."""
    told = story.call.where("formed IS NOT NULL AND rule_id IS NULL AND leader IS NOT NULL")
    listed, leads = F.coalesce(F.size("members"), F.lit(0)) > 0, F.col("leader") == F.col("member_id")
    text = texts(said(), ": it is told of the members, and ", F.col("leader"), " leads")
    # a leader that is not told may be one whose list was too large for the trace
    return found(told.where(listed), F.when(leads, PASS).otherwise(FAIL), "seq", text=text, member="member_id")


def id_required_once(story: Story) -> DataFrame:
    """S05. KIP-394: who joins without an id is given one and refused; from then on, and before v4, nobody is."""
    joins = story.call.where("api = 'JoinGroup' AND rule_id IS NULL AND error IN ('NONE', 'MEMBER_ID_REQUIRED')")
    wanted = (F.col("api_version") >= ID_REQUIRED_SINCE) & F.col("asked_as").isNull() & F.col("instance_id").isNull()
    refused = F.col("error") == "MEMBER_ID_REQUIRED"
    text = texts(said(), F.when(wanted, ": without an id").otherwise(": it needs no id, or has one"))
    return found(joins, F.when(wanted == refused, PASS).otherwise(FAIL), "seq", text=text, member="member_id")


def protocol_of_all(story: Story) -> DataFrame:
    """S09. The assignor that is chosen is one that each member offers."""
    formed = story.call.where("formed IS NOT NULL AND rule_id IS NULL AND protocol IS NOT NULL AND size(protocols) > 0")
    offered = F.array_contains("protocols", F.col("protocol"))
    text = texts(said(), ": ", F.col("protocol"), " was chosen, it offers ", F.array_join("protocols", ", "))
    return found(formed, F.when(offered, PASS).otherwise(FAIL), "seq", text=text, member="member_id")
