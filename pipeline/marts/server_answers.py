"""S04, S08 and S10: whether requests are answered, and as Kafka answers them.

What a rule of the test has acted on is not the coordinator's, and not judged. A request is judged by how the group
was from when it came to when it was answered: it was handled at some time between.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .judging import FAIL, GROUP, PASS, found, said, texts
from .story import MEMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .story import Story

NEVER = 2**62
"""A seq that no event reaches."""

RUN = (*MEMBER, "generation", "error")
"""What calls have in common that can be judged as one, mostly."""

ON_IT = ("trace_id", "node", "conn_id")
"""What the lines of a connection have in common, of whichever group they are."""

TAKEN = ("NONE", "REBALANCE_IN_PROGRESS")
"""The answers to a member in good standing."""


def refused_as_kafka_does(story: Story) -> DataFrame:
    """S04. An unknown member is told so, then a wrong generation; nobody else is told either."""
    asked = story.call.where(
        "api IN ('Heartbeat', 'SyncGroup', 'OffsetCommit', 'TxnOffsetCommit') AND generation >= 0 "
        "AND rule_id IS NULL AND member_id IS NOT NULL AND (offsets IS NULL OR size(offsets) > 0)"
    )
    asked = asked.where(F.col("error").isin(*TAKEN, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"))
    runs = asked.groupBy(*RUN).agg(
        F.count(F.lit(1)).alias("n"),
        F.min("seq").alias("seq"),
        F.max("seq").alias("last_seq"),
        F.min("answered_seq").alias("answered_seq"),
    )
    reigns, stays = _reigns(story), _stays(story).hint("shuffle_hash")
    doubtful = F.broadcast(_doubtful(runs, reigns, stays))
    judged = asked.join(doubtful, [*RUN], "left_semi").select(
        *RUN, "seq", "answered_seq", "api", "instance_id", said().alias("text")
    )
    within = judged.join(stays, [*MEMBER]).where("from_seq < seq AND until_seq > answered_seq")
    strange = F.expr(
        "NOT is_in AND error <> 'UNKNOWN_MEMBER_ID' AND NOT (api = 'Heartbeat' AND error = 'NONE' AND is_loading)"
    )
    known = F.expr(
        "is_in AND error = 'UNKNOWN_MEMBER_ID' AND (instance_id IS NULL OR instance_id = known_as) AND NOT is_loading"
    )
    why = F.when(strange, ": it was no member").when(known, ": it was a member")
    by_member = found(
        within, F.when(why.isNotNull(), FAIL), "seq", text=F.concat(F.col("text"), why), member="member_id"
    )
    return (
        _by_generation(judged, reigns)
        .unionByName(by_member)
        .unionByName(found(runs, PASS, "seq", "last_seq", member="member_id", n="n"))
    )


def _doubtful(runs: DataFrame, reigns: DataFrame, stays: DataFrame) -> DataFrame:
    """The runs whose calls have to be looked at one by one.

    The calls of the others were taken, the group was in their generation from the first to the last, and the member was
    not away meanwhile.
    """
    lasted = reigns.select(*GROUP, F.col("reign").alias("generation"), "from_seq", "until_seq")
    whole = runs.join(lasted, [*GROUP, "generation"], "left").withColumn(
        "is_taken", F.expr("from_seq < answered_seq AND until_seq > last_seq") & F.col("error").isin(*TAKEN)
    )
    whole = whole.groupBy(*RUN, "last_seq", "answered_seq").agg(F.max("is_taken").alias("is_taken"))
    away = stays.where("NOT is_in").select(*MEMBER, "from_seq", "until_seq")
    meanwhile = F.coalesce(F.expr("from_seq < last_seq AND until_seq > answered_seq"), F.lit(col=False))
    return whole.join(away, [*MEMBER], "left").where(~F.coalesce("is_taken", F.lit(col=False)) | meanwhile).select(*RUN)


def _reigns(story: Story) -> DataFrame:
    """From when to when a group was in each generation, `reign`; -1 while it was dead, or not loaded."""
    before = Window.partitionBy(*GROUP).orderBy("seq")
    reign = F.when(F.col("state_to") == "Dead", -1).otherwise(F.col("generation"))
    return (
        story.states.withColumn("reign", reign)
        .withColumn("was", F.lag("reign").over(before))
        .where("was IS NULL OR was <> reign")
        .withColumn("until", F.lead("seq").over(before))
        .select(*GROUP, "reign", F.col("seq").alias("from_seq"), F.coalesce("until", F.lit(NEVER)).alias("until_seq"))
    )


def _by_generation(judged: DataFrame, reigns: DataFrame) -> DataFrame:
    """What was taken in another generation than it named, and what was refused though it named the right one.

    Where it is not known in which generation the group was nothing is found.
    """
    named = F.col("generation") == F.col("reign")
    during = (
        judged.join(reigns.hint("shuffle_hash"), [*GROUP])
        .where("from_seq < answered_seq AND until_seq > seq")
        .groupBy(*judged.columns)
        .agg(
            F.max(named).alias("is_named"),
            F.max(named & F.expr("from_seq < seq AND until_seq > answered_seq")).alias("is_current"),
            F.min("from_seq").alias("from_seq"),
            F.min("reign").alias("least"),
        )
    )
    stale = F.col("error").isin(*TAKEN) & F.expr("NOT is_named AND least >= 0 AND from_seq < seq")
    current = F.expr("error = 'ILLEGAL_GENERATION' AND is_current")
    why = F.when(stale, ": the group was in another generation").when(current, ": it is the group's")
    return found(during, F.when(why.isNotNull(), FAIL), "seq", text=F.concat(F.col("text"), why), member="member_id")


def _stays(story: Story) -> DataFrame:
    """From when to when each member was in its group, or was not any more (`is_in`); `is_loading`: it was elsewhere."""
    changes = story.changes.where("change IN ('added', 'removed', 'replaced')").select(
        *MEMBER, "seq", "instance_id", (F.col("change") == "added").alias("is_in")
    )
    back = story.event.where("kind = 'avoided_static' AND member_id IS NOT NULL").select(
        *MEMBER, "seq", "instance_id", F.lit(col=True).alias("is_in")
    )
    dead = story.states.where("state_to = 'Dead'").groupBy(*GROUP).agg(F.min("seq").alias("dead_seq"))
    after = Window.partitionBy(*MEMBER).orderBy("seq")
    until = F.coalesce(F.lead("seq").over(after), F.lit(NEVER))
    return (
        changes.unionByName(back)
        .withColumn("until_seq", until)
        .join(dead, [*GROUP], "left")
        .select(
            *MEMBER,
            F.col("seq").alias("from_seq"),
            "until_seq",
            "is_in",
            F.col("instance_id").alias("known_as"),
            F.col("dead_seq").isNotNull().alias("is_loading"),
        )
    )


def static_member_is_back(story: Story) -> DataFrame:
    """S08. KIP-345: a static member that is back in Stable, with the same protocol, changes nothing but its id."""
    replaced = story.changes.where("change = 'replaced' AND instance_id IS NOT NULL").select(
        *GROUP, "instance_id", F.col("member_id").alias("old_id"), F.col("seq").alias("replaced_seq")
    )
    # they are few: the calls stay where they are
    replaced = F.broadcast(replaced)
    joins = story.call.where("api = 'JoinGroup' AND asked_as IS NULL AND rule_id IS NULL AND answered_seq IS NOT NULL")
    states = story.states.select(
        *GROUP, F.struct("seq", "state_to", "cause").alias("state"), F.col("until_seq").alias("left_seq")
    )
    back = joins.join(replaced, [*GROUP, "instance_id"]).where("replaced_seq > seq AND replaced_seq < answered_seq")
    then = (
        back.join(states, [*GROUP])
        .where("state.seq < replaced_seq AND (left_seq IS NULL OR left_seq > replaced_seq)")
        .where("state.state_to = 'Stable'")
        .drop("state", "left_seq")
    )
    begun = (
        then.select(*GROUP, "seq", "answered_seq", "replaced_seq")
        .join(states, [*GROUP])
        .where("state.state_to = 'PreparingRebalance' AND state.seq > replaced_seq AND state.seq < answered_seq")
        .groupBy(*GROUP, "seq")
        .agg(F.min("state").alias("begun"))
    )
    judged = then.join(begun, [*GROUP, "seq"], "left")
    status = F.when(F.col("begun").isNull(), PASS).when(F.col("begun.cause") != "protocol_change", FAIL)
    text = texts(said(), ": a rebalance began, ", F.col("begun.cause"))
    first = found(judged, status, "seq", F.coalesce("begun.seq", "answered_seq"), text=text, member="member_id")
    old = (
        story.call.where("asked_as IS NOT NULL AND rule_id IS NULL AND error IS NOT NULL")
        .join(replaced.withColumnRenamed("old_id", "asked_as"), [*GROUP, "instance_id", "asked_as"])
        .where("seq > replaced_seq")
    )
    taken = F.col("error").isin(*TAKEN, "ILLEGAL_GENERATION")
    fenced = F.when(taken, FAIL).when(F.col("error") == "FENCED_INSTANCE_ID", PASS)
    text = texts(said(), ": another has its place since #", F.col("replaced_seq"))
    return first.unionByName(found(old, fenced, "replaced_seq", "seq", text=text, member="member_id"))


def answered_once(story: Story) -> DataFrame:
    """S10. Kafka has one request of a connection in hand: each is answered before the next is read, and once.

    A rule may drop an answer; a Produce may want none; a member's call that it has sent anew elsewhere gets none.
    """
    lines = story.event.where(
        "kind IN ('request', 'response', 'superseded') AND conn_id IS NOT NULL AND NOT coalesce(api = 'Produce', false)"
    ).select(*ON_IT, "group_id", "seq", "kind", "correlation_id", "api", "rule_id")
    doubtful = F.broadcast(_out_of_turn(story, lines))
    in_turn = _of(story.call.where("conn_id IS NOT NULL"), doubtful, "left_anti").groupBy(*GROUP)
    answered = in_turn.agg(
        F.count("answered_seq").alias("n"), F.min("answered_seq").alias("seq"), F.max("answered_seq").alias("last_seq")
    )
    ruled = story.event.where("kind = 'rule' AND change = 'used' AND conn_id IS NOT NULL").select(
        *ON_IT, "correlation_id", F.lit(col=True).alias("is_ruled")
    )
    in_order = Window.partitionBy(*ON_IT).orderBy("seq")
    one = F.struct("kind", "correlation_id", "seq")
    near = _of(lines, doubtful, "left_semi")
    near = near.withColumn("before", F.lag(one).over(in_order)).withColumn("after", F.lead(one).over(in_order))
    near = near.where("group_id IS NOT NULL")
    asked = (F.col("kind") == "request") & (F.col("after.kind") == "request") & F.col("rule_id").isNull()
    skipped = near.where(asked).join(ruled.distinct(), [*ON_IT, "correlation_id"], "left_anti")
    its = (F.col("before.kind") == "request") & (F.col("before.correlation_id") == F.col("correlation_id"))
    answers = near.where("kind = 'response' AND before IS NOT NULL")
    text = texts("#", F.col("seq"), " ", F.col("api"), " was not answered before #", F.col("after.seq"), " was read")
    odd = texts("#", F.col("seq"), " answers a ", F.col("api"), " that does not wait for an answer")
    return (
        found(skipped, FAIL, "seq", "after.seq", text=text)
        .unionByName(found(answers, F.when(its | F.col("rule_id").isNotNull(), PASS).otherwise(FAIL), "seq", text=odd))
        .unionByName(found(answered.where("n > 0"), PASS, "seq", "last_seq", n="n"))
    )


def _out_of_turn(story: Story, lines: DataFrame) -> DataFrame:
    """The connections whose lines have to be looked at one by one.

    On the others each call was answered before the next came, and their lines are those of the calls and no more.
    """
    following = F.lead("seq").over(Window.partitionBy(*ON_IT).orderBy("seq"))
    calls = story.call.where("conn_id IS NOT NULL").select(*ON_IT, "seq", "answered_seq")
    turns = calls.withColumn("following", following).select(
        *ON_IT,
        F.expr("1 + int(answered_seq IS NOT NULL)").alias("more"),
        F.expr("following IS NULL OR answered_seq < following").alias("is_in_turn"),
    )
    known = lines.select(*ON_IT, F.lit(-1).alias("more"), F.col("correlation_id").isNotNull().alias("is_in_turn"))
    well = F.min(F.coalesce("is_in_turn", F.lit(col=False))).alias("well")
    counted = turns.unionByName(known).groupBy(*ON_IT).agg(F.sum("more").alias("more"), well)
    return counted.where("more <> 0 OR NOT well").select(*ON_IT)


def _of(frame: DataFrame, connections: DataFrame, how: str) -> DataFrame:
    """What is, or is not, on one of some connections; which may be of no node."""
    same = reduce(and_, (frame[name].eqNullSafe(connections[name]) for name in ON_IT))
    return frame.join(connections, same, how)
