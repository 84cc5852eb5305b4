"""C04 and C05: how members keep themselves alive, and how they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .judging import FAIL, GROUP, INCONCLUSIVE, OK, PASS, at_least_ms, between_ms, found, said, seconds, texts
from .story import CONNECTION, MEMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .story import Story

STORM_BEATS, STORM_MS = 50, 1000
"""So many heartbeats of one member within so long are a storm: the shortest interval in use is some ten a second."""

STORM_SLOT_MS = 60 * STORM_MS
"""Members' heartbeats are counted by slots of such a length first: in the usual intervals a slot has few."""

AFTER_ALL = 2**62
"""The seq of what comes when everything else has come."""


def heartbeats(story: Story) -> DataFrame:
    """C04. From its SyncGroup until it joins again, leaves, or its connection is closed, a member beats in time."""
    watched = _watched(story)
    waits = F.col("what").isin("JoinGroup", "Heartbeat", "member", "end")
    waited = between_ms(("heard.wall_us", "heard.group_us"), ("wall_us", "group_us"))
    due = watched.where(waits & F.col("heard").isNotNull() & (F.col("session_ms") > 0)).withColumn(
        "is_long", waited >= F.col("session_ms") / 2
    )
    long = story.less_held(_in_time_counted(due))
    silent = F.col("waited_ms") >= F.col("session_ms") / 2
    text = texts(
        "{name}{software} sent no heartbeat for ",
        seconds(F.col("waited_ms"), roughly=True),
        " s after #",
        F.col("since.seq"),
        "; its session timeout is ",
        seconds(F.col("session_ms")),
        " s",
    )
    judged = found(
        long,
        F.when(silent, FAIL).when(F.col("beats"), PASS),
        F.when(silent, F.col("since.seq")).otherwise(F.col("first_seq")),
        F.col("until.seq"),
        text=text,
        member="member_id",
        n="n",
    )
    return judged.unionByName(_storms(story)).unionByName(_generation_minus_one(story))


def _in_time_counted(due: DataFrame) -> DataFrame:
    """What was long in coming, row by row; and one row for all heartbeats of a member that came in time, mostly all.

    That one has no `since`: nothing is to be found out about it.
    """
    beats, when = F.col("what") == "Heartbeat", ("seq", "wall_us", "group_us")
    rows = due.where(beats | F.col("is_long")).groupBy(*MEMBER, F.when(F.col("is_long"), F.col("seq")).alias("long"))
    counted = rows.agg(
        F.count(F.lit(1)).alias("n"),
        F.bool_or(beats).alias("beats"),
        F.max("session_ms").alias("session_ms"),
        F.min("line_seq").alias("first_seq"),
        *(F.max(f"heard.{name}").alias(f"since_{name}") for name in (*when, "node", "conn_id")),
        *(F.max(name).alias(f"until_{name}") for name in ("line_seq", *when[1:])),
    )
    until = F.struct(F.col("until_line_seq").alias("seq"), *(F.col(f"until_{name}").alias(name) for name in when[1:]))
    since = F.when(F.col("long").isNotNull(), F.struct(*(F.col(f"since_{name}").alias(name) for name in when)))
    of_late = {"since": since, "until": until, "node": F.col("since_node"), "conn_id": F.col("since_conn_id")}
    return counted.withColumns(of_late).select(*MEMBER, "n", "beats", "session_ms", "first_seq", *of_late)


def _watched(story: Story) -> DataFrame:
    """What says how long each member has been silent; `heard` is the answer since which the next heartbeat is due.

    Whatever is not an answer that all is well ends the waiting: a JoinGroup, a LeaveGroup, a broker that goes.
    """
    plain = ("wall_us", "group_us")
    nothing = F.lit(None).cast("struct<seq:bigint,wall_us:bigint,group_us:bigint,node:int,conn_id:int>").alias("answer")
    no_session = F.lit(None).cast("int").alias("session_timeout_ms")
    asks = F.col("api").isin("JoinGroup", "LeaveGroup", "Heartbeat", "SyncGroup")
    answer = F.struct(
        F.col("answered_seq").alias("seq"),
        F.col("answered_wall_us").alias("wall_us"),
        F.col("answered_group_us").alias("group_us"),
        "node",
        "conn_id",
    )
    is_well = F.col("api").isin("Heartbeat", "SyncGroup") & (F.col("error") == OK)
    calls = story.call.where(asks & F.col("member_id").isNotNull()).select(
        *MEMBER,
        "seq",
        F.col("seq").alias("line_seq"),
        *plain,
        F.col("api").alias("what"),
        F.when(is_well, answer).alias("answer"),
        F.when(F.col("api") == "JoinGroup", F.col("session_timeout_ms")).alias("session_timeout_ms"),
    )
    line = F.col("seq").alias("line_seq")
    changes = story.changes.select(*MEMBER, "seq", line, *plain, F.lit("member").alias("what"), nothing, no_session)
    no_time = [F.lit(None).cast("bigint").alias(name) for name in plain]
    connections = story.call.where("member_id IS NOT NULL").select(*MEMBER, "node", "conn_id").distinct()
    closings = (
        story.event.where("kind = 'conn' AND change = 'closed'")
        .select("trace_id", "node", "conn_id", "seq")
        .join(connections, ["trace_id", "node", "conn_id"])
        .select(*MEMBER, "seq", line, *no_time, F.lit("over").alias("what"), nothing, no_session)
    )
    asked = story.asked.select(*MEMBER)
    moves = (
        story.moves.join(asked, "trace_id")
        .where("of_group IS NULL OR of_group = group_id")
        .select(*MEMBER, "seq", line, *no_time, F.lit("over").alias("what"), nothing, no_session)
    )
    ends = asked.join(story.ends, [*GROUP]).select(
        *MEMBER,
        F.lit(AFTER_ALL).cast("bigint").alias("seq"),
        F.col("end.seq").alias("line_seq"),
        F.col("end.wall_us").alias("wall_us"),
        F.col("end.group_us").alias("group_us"),
        F.lit("end").alias("what"),
        nothing,
        no_session,
    )
    everything = calls.unionByName(changes).unionByName(closings).unionByName(moves).unionByName(ends)
    of_member = Window.partitionBy(*MEMBER).orderBy("seq")
    return everything.withColumn("heard", F.lag("answer").over(of_member)).withColumn(
        "session_ms", F.last("session_timeout_ms", ignorenulls=True).over(of_member)
    )


def _storms(story: Story) -> DataFrame:
    beats = story.call.where("api = 'Heartbeat' AND member_id IS NOT NULL").select(
        *MEMBER, "seq", "wall_us", "group_us"
    )
    # of so many within so long at least half are within one of two slots: few members need to be looked at
    slot = F.floor(F.col("wall_us") / (STORM_SLOT_MS * 1000))
    many = beats.groupBy(*MEMBER, slot).count().where(F.col("count") > STORM_BEATS // 2).select(*MEMBER).distinct()
    in_order = Window.partitionBy(*MEMBER).orderBy("seq")
    earlier = F.lag(F.struct("seq", "wall_us", "group_us"), STORM_BEATS).over(in_order)
    beats = beats.join(F.broadcast(many), [*MEMBER], "left_semi").withColumn("earlier", earlier)
    fast = (
        F.coalesce(
            at_least_ms(("earlier.wall_us", "earlier.group_us"), ("wall_us", "group_us")) <= STORM_MS,
            F.lit(False),  # noqa: FBT003 - a value
        )
        & F.col("earlier").isNotNull()
    )
    # heartbeats of one storm are told once
    goes_on = F.coalesce(F.lag("fast").over(in_order), F.lit(False))  # noqa: FBT003
    begins = beats.withColumn("fast", fast).withColumn("goes_on", goes_on).where("fast AND NOT goes_on")
    text = texts(f"{{name}}{{software}} sent {STORM_BEATS + 1} heartbeats within {STORM_MS} ms")
    return found(begins, FAIL, "earlier.seq", "seq", text=text, member="member_id")


def _generation_minus_one(story: Story) -> DataFrame:
    synced = (
        story.answered_as(("SyncGroup",))
        .where("member_id IS NOT NULL")
        .groupBy(*MEMBER)
        .agg(F.min("seq").alias("synced_seq"))
    )
    forgot = story.call.where("api IN ('Heartbeat', 'SyncGroup', 'OffsetCommit') AND generation = -1").join(
        synced, [*MEMBER]
    )
    text = texts(said(), "{software}: generation -1 after a SyncGroup")
    return found(forgot.where("synced_seq < seq"), FAIL, "seq", text=text, member="member_id")


def leaving(story: Story) -> DataFrame:
    """C05. KIP-345: a static member does not leave when it is closed; its place waits for it for a session."""
    own = story.call.where("api IN ('JoinGroup', 'SyncGroup', 'Heartbeat') AND member_id IS NOT NULL")
    leaves = (
        story.call.where("api = 'LeaveGroup' AND member_id IS NOT NULL")
        .join(own.select(*CONNECTION, "member_id").distinct(), [*CONNECTION, "member_id"], "left_semi")
        .groupBy(*MEMBER)
        .agg(F.min(F.struct("seq", said().alias("text"))).alias("leave"))
    )
    by_leave = (
        story.changes.where("cause = 'member_leave' AND change = 'removed'")
        .select(*MEMBER, F.lit(True).alias("was_let_go"))  # noqa: FBT003 - a value
        .distinct()
    )
    before = (
        story.asked.select(*MEMBER, "closed_seq")
        .join(story.changes.select(*MEMBER, "seq", "change"), [*MEMBER])
        .where("seq < closed_seq")
        .groupBy(*MEMBER)
        .agg(F.max(F.struct("seq", "change")).alias("last_change"))
    )
    known = (
        story.asked.join(leaves, [*MEMBER], "left").join(by_leave, [*MEMBER], "left").join(before, [*MEMBER], "left")
    )
    was_in = F.col("last_change").isNull() | ~F.col("last_change.change").isin("removed", "replaced")
    vanished = F.col("closed_seq").isNotNull() & ~F.col("by_broker") & (F.col("formed_seq") < F.col("closed_seq"))
    left, is_static = F.col("leave").isNotNull(), F.col("is_static")
    status = (
        F.when(left, F.when(is_static, FAIL).otherwise(PASS))
        .when(F.coalesce(vanished & was_in, F.lit(False)) & is_static, PASS)  # noqa: FBT003 - a value
        .when(F.coalesce(vanished & was_in, F.lit(False)) & F.col("was_let_go").isNull(), INCONCLUSIVE)  # noqa: FBT003
    )
    text = F.when(left, texts("{name}{software} is a static member and has sent ", F.col("leave.text"))).otherwise(
        texts(
            "{name}{software} closed its connection without a LeaveGroup (#",
            F.col("closed_seq"),
            "): it was killed, or it never leaves",
        )
    )
    first = F.when(left, F.col("leave.seq")).otherwise(F.col("closed_seq"))
    return found(known, status, first, text=text, member="member_id")
