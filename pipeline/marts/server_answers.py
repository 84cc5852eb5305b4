"""S04, S08 and S10: whether the coordinator responds to requests, and with Kafka's errors.

A response changed by a fault rule is not judged. The coordinator handled a request at some time between the request and
its response; so each state of the group in between counts.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import MEMBER
from .findings import FAIL, GROUP, PASS, call_text, findings, join_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .check_input import CheckInput

NEVER = 2**62
"""A sequence number beyond all events."""

RUN_KEY = (*MEMBER, "generation", "error")
"""The key of calls that can usually be judged together."""

CONNECTION_KEY = ("trace_id", "node", "conn_id")
"""The key of a connection, across groups."""

ACCEPTED = ("NONE", "REBALANCE_IN_PROGRESS")
"""Errors that a valid member receives."""


def errors_in_kafkas_order(inputs: CheckInput) -> DataFrame:
    """S04: an unknown member gets UNKNOWN_MEMBER_ID, then a wrong generation ILLEGAL_GENERATION; others neither."""
    calls = inputs.call.where(
        "api IN ('Heartbeat', 'SyncGroup', 'OffsetCommit', 'TxnOffsetCommit') AND generation >= 0 "
        "AND rule_id IS NULL AND member_id IS NOT NULL AND (offsets IS NULL OR size(offsets) > 0)"
    )
    calls = calls.where(F.col("error").isin(*ACCEPTED, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"))
    runs = calls.groupBy(*RUN_KEY).agg(
        F.count(F.lit(1)).alias("n"),
        F.min("seq").alias("seq"),
        F.max("seq").alias("last_seq"),
        F.min("answered_seq").alias("answered_seq"),
    )
    intervals, memberships = _intervals(inputs), _memberships(inputs).hint("shuffle_hash")
    doubtful = F.broadcast(_unclear_runs(runs, intervals, memberships))
    judged = calls.join(doubtful, [*RUN_KEY], "left_semi").select(
        *RUN_KEY, "seq", "answered_seq", "api", "instance_id", call_text().alias("text")
    )
    within = judged.join(memberships, [*MEMBER]).where("from_seq < seq AND until_seq > answered_seq")
    not_refused = F.expr(
        "NOT is_in AND error <> 'UNKNOWN_MEMBER_ID' AND NOT (api = 'Heartbeat' AND error = 'NONE' AND is_loading)"
    )
    wrongly_refused = F.expr(
        "is_in AND error = 'UNKNOWN_MEMBER_ID' AND (instance_id IS NULL OR instance_id = known_as) AND NOT is_loading"
    )
    reason = F.when(not_refused, ": it was no member").when(wrongly_refused, ": it was a member")
    by_member = findings(
        within, F.when(reason.isNotNull(), FAIL), "seq", text=F.concat(F.col("text"), reason), member="member_id"
    )
    return (
        _by_generation(judged, intervals)
        .unionByName(by_member)
        .unionByName(findings(runs, PASS, "seq", "last_seq", member="member_id", n="n"))
    )


def _unclear_runs(runs: DataFrame, intervals: DataFrame, memberships: DataFrame) -> DataFrame:
    """Return the runs whose calls need individual checks.

    The calls of all other runs were accepted while the group was in their generation and the member was in the group.
    """
    lasted = intervals.select(*GROUP, F.col("reign").alias("generation"), "from_seq", "until_seq")
    whole = runs.join(lasted, [*GROUP, "generation"], "left").withColumn(
        "is_taken", F.expr("from_seq < answered_seq AND until_seq > last_seq") & F.col("error").isin(*ACCEPTED)
    )
    whole = whole.groupBy(*RUN_KEY, "last_seq", "answered_seq").agg(F.max("is_taken").alias("is_taken"))
    away = memberships.where("NOT is_in").select(*MEMBER, "from_seq", "until_seq")
    meanwhile = F.coalesce(F.expr("from_seq < last_seq AND until_seq > answered_seq"), F.lit(col=False))
    return (
        whole.join(away, [*MEMBER], "left")
        .where(~F.coalesce("is_taken", F.lit(col=False)) | meanwhile)
        .select(*RUN_KEY)
    )


def _intervals(inputs: CheckInput) -> DataFrame:
    """Return the interval of each generation of a group, `reign`; -1 while it was dead or not loaded."""
    before = Window.partitionBy(*GROUP).orderBy("seq")
    reign = F.when(F.col("state_to") == "Dead", -1).otherwise(F.col("generation"))
    return (
        inputs.states.withColumn("reign", reign)
        .withColumn("was", F.lag("reign").over(before))
        .where("was IS NULL OR was <> reign")
        .withColumn("until", F.lead("seq").over(before))
        .select(*GROUP, "reign", F.col("seq").alias("from_seq"), F.coalesce("until", F.lit(NEVER)).alias("until_seq"))
    )


def _by_generation(judged: DataFrame, intervals: DataFrame) -> DataFrame:
    """Find calls accepted in another generation than they name, and calls refused in the group's own generation.

    Calls at a time when the group's generation is unknown are not judged.
    """
    named = F.col("generation") == F.col("reign")
    during = (
        judged.join(intervals.hint("shuffle_hash"), [*GROUP])
        .where("from_seq < answered_seq AND until_seq > seq")
        .groupBy(*judged.columns)
        .agg(
            F.max(named).alias("is_named"),
            F.max(named & F.expr("from_seq < seq AND until_seq > answered_seq")).alias("is_current"),
            F.min("from_seq").alias("from_seq"),
            F.min("reign").alias("least"),
        )
    )
    stale = F.col("error").isin(*ACCEPTED) & F.expr("NOT is_named AND least >= 0 AND from_seq < seq")
    current = F.expr("error = 'ILLEGAL_GENERATION' AND is_current")
    reason = F.when(stale, ": the group was in another generation").when(current, ": it is the group's")
    return findings(
        during, F.when(reason.isNotNull(), FAIL), "seq", text=F.concat(F.col("text"), reason), member="member_id"
    )


def _memberships(inputs: CheckInput) -> DataFrame:
    """Return when each member was in its group or not (`is_in`); `is_loading`: the group had moved away."""
    changes = inputs.changes.where("change IN ('added', 'removed', 'replaced')").select(
        *MEMBER, "seq", "instance_id", (F.col("change") == "added").alias("is_in")
    )
    back = inputs.event.where("kind = 'avoided_static' AND member_id IS NOT NULL").select(
        *MEMBER, "seq", "instance_id", F.lit(col=True).alias("is_in")
    )
    dead = inputs.states.where("state_to = 'Dead'").groupBy(*GROUP).agg(F.min("seq").alias("dead_seq"))
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


def static_rejoin_without_rebalance(inputs: CheckInput) -> DataFrame:
    """S08: a static member that rejoins a Stable group with the same protocol changes only its member id (KIP-345)."""
    replaced = inputs.changes.where("change = 'replaced' AND instance_id IS NOT NULL").select(
        *GROUP, "instance_id", F.col("member_id").alias("old_id"), F.col("seq").alias("replaced_seq")
    )
    # replacements are few, so the calls are not shuffled
    replaced = F.broadcast(replaced)
    joins = inputs.call.where("api = 'JoinGroup' AND asked_as IS NULL AND rule_id IS NULL AND answered_seq IS NOT NULL")
    states = inputs.states.select(
        *GROUP, F.struct("seq", "state_to", "cause").alias("state"), F.col("until_seq").alias("left_seq")
    )
    back = joins.join(replaced, [*GROUP, "instance_id"]).where("replaced_seq > seq AND replaced_seq < answered_seq")
    then = (
        back.join(states, [*GROUP])
        .where("state.seq < replaced_seq AND (left_seq IS NULL OR left_seq > replaced_seq)")
        .where("state.state_to = 'Stable'")
        .drop("state", "left_seq")
    )
    started = (
        then.select(*GROUP, "seq", "answered_seq", "replaced_seq")
        .join(states, [*GROUP])
        .where("state.state_to = 'PreparingRebalance' AND state.seq > replaced_seq AND state.seq < answered_seq")
        .groupBy(*GROUP, "seq")
        .agg(F.min("state").alias("started"))
    )
    judged = then.join(started, [*GROUP, "seq"], "left")
    status = F.when(F.col("started").isNull(), PASS).when(F.col("started.cause") != "protocol_change", FAIL)
    text = join_text(call_text(), ": a rebalance began, ", F.col("started.cause"))
    first = findings(judged, status, "seq", F.coalesce("started.seq", "answered_seq"), text=text, member="member_id")
    old = (
        inputs.call.where("asked_as IS NOT NULL AND rule_id IS NULL AND error IS NOT NULL")
        .join(replaced.withColumnRenamed("old_id", "asked_as"), [*GROUP, "instance_id", "asked_as"])
        .where("seq > replaced_seq")
    )
    accepted = F.col("error").isin(*ACCEPTED, "ILLEGAL_GENERATION")
    fenced = F.when(accepted, FAIL).when(F.col("error") == "FENCED_INSTANCE_ID", PASS)
    text = join_text(call_text(), ": another has its place since #", F.col("replaced_seq"))
    return first.unionByName(findings(old, fenced, "replaced_seq", "seq", text=text, member="member_id"))


def one_response_in_order(inputs: CheckInput) -> DataFrame:
    """S10: Kafka handles one request of a connection at a time, so each has its response before the next is read.

    A rule may drop a response, a Produce with acks=0 has none, and neither has a call that the member repeated
    elsewhere.
    """
    lines = inputs.event.where(
        "kind IN ('request', 'response', 'superseded') AND conn_id IS NOT NULL AND NOT coalesce(api = 'Produce', false)"
    ).select(*CONNECTION_KEY, "group_id", "seq", "kind", "correlation_id", "api", "rule_id")
    doubtful = F.broadcast(_irregular_connections(inputs, lines))
    in_turn = _on_connections(inputs.call.where("conn_id IS NOT NULL"), doubtful, "left_anti").groupBy(*GROUP)
    answered = in_turn.agg(
        F.count("answered_seq").alias("n"), F.min("answered_seq").alias("seq"), F.max("answered_seq").alias("last_seq")
    )
    ruled = inputs.event.where("kind = 'rule' AND change = 'used' AND conn_id IS NOT NULL").select(
        *CONNECTION_KEY, "correlation_id", F.lit(col=True).alias("is_ruled")
    )
    in_order = Window.partitionBy(*CONNECTION_KEY).orderBy("seq")
    one = F.struct("kind", "correlation_id", "seq")
    lines_ = _on_connections(lines, doubtful, "left_semi")
    lines_ = lines_.withColumn("before", F.lag(one).over(in_order)).withColumn("after", F.lead(one).over(in_order))
    lines_ = lines_.where("group_id IS NOT NULL")
    asked = (F.col("kind") == "request") & (F.col("after.kind") == "request") & F.col("rule_id").isNull()
    skipped = lines_.where(asked).join(ruled.distinct(), [*CONNECTION_KEY, "correlation_id"], "left_anti")
    matches = (F.col("before.kind") == "request") & (F.col("before.correlation_id") == F.col("correlation_id"))
    answers = lines_.where("kind = 'response' AND before IS NOT NULL")
    text = join_text(
        "#", F.col("seq"), " ", F.col("api"), " was not answered before #", F.col("after.seq"), " was read"
    )
    unexpected = join_text("#", F.col("seq"), " answers a ", F.col("api"), " that does not wait for an answer")
    return (
        findings(skipped, FAIL, "seq", "after.seq", text=text)
        .unionByName(
            findings(
                answers, F.when(matches | F.col("rule_id").isNotNull(), PASS).otherwise(FAIL), "seq", text=unexpected
            )
        )
        .unionByName(findings(answered.where("n > 0"), PASS, "seq", "last_seq", n="n"))
    )


def _irregular_connections(inputs: CheckInput, lines: DataFrame) -> DataFrame:
    """Return the connections whose events need individual checks.

    On all other connections each call has its response before the next call, and no further events exist.
    """
    following = F.lead("seq").over(Window.partitionBy(*CONNECTION_KEY).orderBy("seq"))
    calls = inputs.call.where("conn_id IS NOT NULL").select(*CONNECTION_KEY, "seq", "answered_seq")
    turns = calls.withColumn("following", following).select(
        *CONNECTION_KEY,
        F.expr("1 + int(answered_seq IS NOT NULL)").alias("more"),
        F.expr("following IS NULL OR answered_seq < following").alias("is_in_turn"),
    )
    known = lines.select(
        *CONNECTION_KEY, F.lit(-1).alias("more"), F.col("correlation_id").isNotNull().alias("is_in_turn")
    )
    is_regular = F.min(F.coalesce("is_in_turn", F.lit(col=False))).alias("is_regular")
    counted = turns.unionByName(known).groupBy(*CONNECTION_KEY).agg(F.sum("more").alias("more"), is_regular)
    return counted.where("more <> 0 OR NOT is_regular").select(*CONNECTION_KEY)


def _on_connections(frame: DataFrame, connections: DataFrame, how: str) -> DataFrame:
    """Return the rows that are, or are not, on one of the connections; the node of a connection may be null."""
    same = reduce(and_, (frame[name].eqNullSafe(connections[name]) for name in CONNECTION_KEY))
    return frame.join(connections, same, how)
