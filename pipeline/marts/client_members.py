"""C04 and C05: heartbeats of members, and their departure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import CONNECTION, MEMBER
from .findings import (
    FAIL,
    GROUP,
    INCONCLUSIVE,
    OK,
    PASS,
    at_least_ms,
    between_ms,
    call_text,
    findings,
    join_text,
    seconds,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .check_input import CheckInput

STORM_HEARTBEATS, STORM_MS = 50, 1000
"""This many heartbeats of one member within this time are a storm; the shortest interval in use sends about ten a
second."""

STORM_SLOT_MS = 60 * STORM_MS
"""Length of the slots in which heartbeats are first counted; with usual intervals a slot has few."""

AFTER_ALL_EVENTS = 2**62
"""A sequence number after all events."""


def heartbeats(inputs: CheckInput) -> DataFrame:
    """C04: a member sends heartbeats in time from its SyncGroup until it rejoins, leaves, or disconnects."""
    watched = _waits(inputs)
    waits = F.col("what").isin("JoinGroup", "Heartbeat", "member", "end")
    waited = between_ms(("heard.wall_us", "heard.group_us"), ("wall_us", "group_us"))
    due = watched.where(waits & F.col("heard").isNotNull() & (F.col("session_ms") > 0)).withColumn(
        "is_long", waited >= F.col("session_ms") / 2
    )
    long = inputs.with_waited_ms(_timely_merged(due))
    silent = F.col("waited_ms") >= F.col("session_ms") / 2
    text = join_text(
        "{name}{software} sent no heartbeat for ",
        seconds(F.col("waited_ms"), roughly=True),
        " s after #",
        F.col("since.seq"),
        "; its session timeout is ",
        seconds(F.col("session_ms")),
        " s",
    )
    judged = findings(
        long,
        F.when(silent, FAIL).when(F.col("beats"), PASS),
        F.when(silent, F.col("since.seq")).otherwise(F.col("first_seq")),
        F.col("until.seq"),
        text=text,
        member="member_id",
        n="n",
    )
    return judged.unionByName(_storms(inputs)).unionByName(_generation_minus_one(inputs))


def _timely_merged(due: DataFrame) -> DataFrame:
    """Return one row for each long wait, and one row for all timely heartbeats of a member, which are the majority.

    The latter row has no `since`, because it needs no further check.
    """
    is_heartbeat, when = F.col("what") == "Heartbeat", ("seq", "wall_us", "group_us")
    rows = due.where(is_heartbeat | F.col("is_long")).groupBy(
        *MEMBER, F.when(F.col("is_long"), F.col("seq")).alias("long")
    )
    counted = rows.agg(
        F.count(F.lit(1)).alias("n"),
        F.bool_or(is_heartbeat).alias("beats"),
        F.max("session_ms").alias("session_ms"),
        F.min("line_seq").alias("first_seq"),
        *(F.max(f"heard.{name}").alias(f"since_{name}") for name in (*when, "node", "conn_id")),
        *(F.max(name).alias(f"until_{name}") for name in ("line_seq", *when[1:])),
    )
    until = F.struct(F.col("until_line_seq").alias("seq"), *(F.col(f"until_{name}").alias(name) for name in when[1:]))
    since = F.when(F.col("long").isNotNull(), F.struct(*(F.col(f"since_{name}").alias(name) for name in when)))
    of_late = {"since": since, "until": until, "node": F.col("since_node"), "conn_id": F.col("since_conn_id")}
    return counted.withColumns(of_late).select(*MEMBER, "n", "beats", "session_ms", "first_seq", *of_late)


def _waits(inputs: CheckInput) -> DataFrame:
    """Return the events that end a wait of each member; `heard` is the response from which the next heartbeat is due.

    Anything except a successful response stops the wait: a JoinGroup, a LeaveGroup, a broker that stops.
    """
    plain = ("wall_us", "group_us")
    nothing = F.lit(None).cast("struct<seq:bigint,wall_us:bigint,group_us:bigint,node:int,conn_id:int>").alias("answer")
    no_session = F.lit(None).cast("int").alias("session_timeout_ms")
    is_relevant = F.col("api").isin("JoinGroup", "LeaveGroup", "Heartbeat", "SyncGroup")
    answer = F.struct(
        F.col("answered_seq").alias("seq"),
        F.col("answered_wall_us").alias("wall_us"),
        F.col("answered_group_us").alias("group_us"),
        "node",
        "conn_id",
    )
    is_accepted = F.col("api").isin("Heartbeat", "SyncGroup") & (F.col("error") == OK)
    calls = inputs.call.where(is_relevant & F.col("member_id").isNotNull()).select(
        *MEMBER,
        "seq",
        F.col("seq").alias("line_seq"),
        *plain,
        F.col("api").alias("what"),
        F.when(is_accepted, answer).alias("answer"),
        F.when(F.col("api") == "JoinGroup", F.col("session_timeout_ms")).alias("session_timeout_ms"),
    )
    line = F.col("seq").alias("line_seq")
    changes = inputs.changes.select(*MEMBER, "seq", line, *plain, F.lit("member").alias("what"), nothing, no_session)
    no_time = [F.lit(None).cast("bigint").alias(name) for name in plain]
    connections = inputs.call.where("member_id IS NOT NULL").select(*MEMBER, "node", "conn_id").distinct()
    closings = (
        inputs.event.where("kind = 'conn' AND change = 'closed'")
        .select("trace_id", "node", "conn_id", "seq")
        .join(connections, ["trace_id", "node", "conn_id"])
        .select(*MEMBER, "seq", line, *no_time, F.lit("stop").alias("what"), nothing, no_session)
    )
    requesting = inputs.requesting.select(*MEMBER)
    relocations = (
        inputs.relocations.join(requesting, "trace_id")
        .where("of_group IS NULL OR of_group = group_id")
        .select(*MEMBER, "seq", line, *no_time, F.lit("stop").alias("what"), nothing, no_session)
    )
    ends = requesting.join(inputs.ends, [*GROUP]).select(
        *MEMBER,
        F.lit(AFTER_ALL_EVENTS).cast("bigint").alias("seq"),
        F.col("end.seq").alias("line_seq"),
        F.col("end.wall_us").alias("wall_us"),
        F.col("end.group_us").alias("group_us"),
        F.lit("end").alias("what"),
        nothing,
        no_session,
    )
    events = calls.unionByName(changes).unionByName(closings).unionByName(relocations).unionByName(ends)
    of_member = Window.partitionBy(*MEMBER).orderBy("seq")
    return events.withColumn("heard", F.lag("answer").over(of_member)).withColumn(
        "session_ms", F.last("session_timeout_ms", ignorenulls=True).over(of_member)
    )


def _storms(inputs: CheckInput) -> DataFrame:
    heartbeats_ = inputs.call.where("api = 'Heartbeat' AND member_id IS NOT NULL").select(
        *MEMBER, "seq", "wall_us", "group_us"
    )
    # of a storm's heartbeats at least half lie in one of two slots, so few members need a closer look
    slot = F.floor(F.col("wall_us") / (STORM_SLOT_MS * 1000))
    active = (
        heartbeats_.groupBy(*MEMBER, slot)
        .count()
        .where(F.col("count") > STORM_HEARTBEATS // 2)
        .select(*MEMBER)
        .distinct()
    )
    in_order = Window.partitionBy(*MEMBER).orderBy("seq")
    earlier = F.lag(F.struct("seq", "wall_us", "group_us"), STORM_HEARTBEATS).over(in_order)
    heartbeats_ = heartbeats_.join(F.broadcast(active), [*MEMBER], "left_semi").withColumn("earlier", earlier)
    fast = (
        F.coalesce(
            at_least_ms(("earlier.wall_us", "earlier.group_us"), ("wall_us", "group_us")) <= STORM_MS,
            F.lit(False),  # noqa: FBT003 - a value
        )
        & F.col("earlier").isNotNull()
    )
    # report each storm once
    goes_on = F.coalesce(F.lag("fast").over(in_order), F.lit(False))  # noqa: FBT003
    starts = heartbeats_.withColumn("fast", fast).withColumn("goes_on", goes_on).where("fast AND NOT goes_on")
    text = join_text(f"{{name}}{{software}} sent {STORM_HEARTBEATS + 1} heartbeats within {STORM_MS} ms")
    return findings(starts, FAIL, "earlier.seq", "seq", text=text, member="member_id")


def _generation_minus_one(inputs: CheckInput) -> DataFrame:
    synced = (
        inputs.answered_as(("SyncGroup",))
        .where("member_id IS NOT NULL")
        .groupBy(*MEMBER)
        .agg(F.min("seq").alias("synced_seq"))
    )
    without_generation = inputs.call.where(
        "api IN ('Heartbeat', 'SyncGroup', 'OffsetCommit') AND generation = -1"
    ).join(synced, [*MEMBER])
    text = join_text(call_text(), "{software}: generation -1 after a SyncGroup")
    return findings(without_generation.where("synced_seq < seq"), FAIL, "seq", text=text, member="member_id")


def leave_on_close(inputs: CheckInput) -> DataFrame:
    """C05: a static member sends no LeaveGroup when it closes; its place stays reserved for a session (KIP-345)."""
    own = inputs.call.where("api IN ('JoinGroup', 'SyncGroup', 'Heartbeat') AND member_id IS NOT NULL")
    leaves = (
        inputs.call.where("api = 'LeaveGroup' AND member_id IS NOT NULL")
        .join(own.select(*CONNECTION, "member_id").distinct(), [*CONNECTION, "member_id"], "left_semi")
        .groupBy(*MEMBER)
        .agg(F.min(F.struct("seq", call_text().alias("text"))).alias("leave"))
    )
    by_leave = (
        inputs.changes.where("cause = 'member_leave' AND change = 'removed'")
        .select(*MEMBER, F.lit(True).alias("was_let_go"))  # noqa: FBT003 - a value
        .distinct()
    )
    before = (
        inputs.requesting.select(*MEMBER, "closed_seq")
        .join(inputs.changes.select(*MEMBER, "seq", "change"), [*MEMBER])
        .where("seq < closed_seq")
        .groupBy(*MEMBER)
        .agg(F.max(F.struct("seq", "change")).alias("last_change"))
    )
    known = (
        inputs.requesting.join(leaves, [*MEMBER], "left")
        .join(by_leave, [*MEMBER], "left")
        .join(before, [*MEMBER], "left")
    )
    was_in = F.col("last_change").isNull() | ~F.col("last_change.change").isin("removed", "replaced")
    is_closed_by_client = (
        F.col("closed_seq").isNotNull() & ~F.col("by_broker") & (F.col("formed_seq") < F.col("closed_seq"))
    )
    left, is_static = F.col("leave").isNotNull(), F.col("is_static")
    status = (
        F.when(left, F.when(is_static, FAIL).otherwise(PASS))
        .when(F.coalesce(is_closed_by_client & was_in, F.lit(False)) & is_static, PASS)  # noqa: FBT003 - a value
        .when(F.coalesce(is_closed_by_client & was_in, F.lit(False)) & F.col("was_let_go").isNull(), INCONCLUSIVE)  # noqa: FBT003
    )
    text = F.when(left, join_text("{name}{software} is a static member and has sent ", F.col("leave.text"))).otherwise(
        join_text(
            "{name}{software} closed its connection without a LeaveGroup (#",
            F.col("closed_seq"),
            "): it was killed, or it never leaves",
        )
    )
    first = F.when(left, F.col("leave.seq")).otherwise(F.col("closed_seq"))
    return findings(known, status, first, text=text, member="member_id")
