"""C01, C02, C08 and C09: joining, finding the coordinator, and reacting to errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import CONNECTION, MEMBER
from .findings import (
    FAIL,
    GROUP,
    INCONCLUSIVE,
    PASS,
    after,
    at_least_ms,
    call_text,
    findings,
    join_text,
    seconds,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .check_input import CheckInput

LOOKUP_MS = 1000
"""Time that a client may take to look up its coordinator. librdkafka looks it up at most twice a second, and sends
heartbeats to the old coordinator until then."""

LOOP_CALLS, LOOP_MS = 15, 1000
"""One error this often within this time is a loop without a pause: the default `retry.backoff.ms` is 100."""

FATAL = ("FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL")
"""Errors that a retry does not solve."""


def assigned_id_is_used(inputs: CheckInput) -> DataFrame:
    """C01: an id that is not used blocks the group until it expires (KIP-394; librdkafka #5569)."""
    new_join = F.when(
        F.col("asked_as").isNull() & F.col("instance_id").isNull(), F.struct("seq", F.col("text").alias("text"))
    )
    assigned = (
        inputs.call.where("api = 'JoinGroup'")
        .withColumn("text", call_text())
        .withColumn("at", F.col("seq"))
        .withColumn("rejoin", F.last(new_join, ignorenulls=True).over(after(*CONNECTION, "client_id")))
        .where("error = 'MEMBER_ID_REQUIRED' AND member_id IS NOT NULL")
        .withColumn("since", _response_position())
        .select(*MEMBER, "node", "conn_id", "seq", "session_timeout_ms", "text", "rejoin", "since")
    )
    uses = inputs.call.where("asked_as IS NOT NULL").select(
        *GROUP, F.col("asked_as").alias("member_id"), F.col("seq").alias("use_seq"), "wall_us", "group_us"
    )
    answers = assigned.select(*MEMBER, "seq", F.col("since.seq").alias("since_seq")).hint("shuffle_hash")
    first_use = (
        uses.join(answers, [*MEMBER])
        .where("use_seq > since_seq")
        .groupBy(*MEMBER, "seq")
        .agg(
            F.min("use_seq").alias("use_seq"),
            F.min_by("wall_us", "use_seq").alias("wall_us"),
            F.min_by("group_us", "use_seq").alias("group_us"),
        )
        .select(*MEMBER, "seq", F.struct(F.col("use_seq").alias("seq"), "wall_us", "group_us").alias("use"))
    )
    known = (
        assigned.join(first_use, [*MEMBER, "seq"], "left")
        .withColumn("rejoin", F.when(F.expr("use IS NULL OR rejoin.seq <= use.seq"), F.col("rejoin")))
        .join(inputs.closings, ["trace_id", "node", "conn_id"], "left")
        .join(inputs.ends, [*GROUP], "left")
    )
    judged = inputs.with_waited_ms(known.withColumn("until", F.coalesce("use", "end")))
    session_ms = F.coalesce("session_timeout_ms", F.lit(0))
    in_time = F.col("waited_ms") <= session_ms
    is_used, is_closed = F.col("use").isNotNull(), F.col("closed_seq").isNotNull()
    joined_again = F.col("rejoin").isNotNull()
    status = (
        F.when(joined_again, FAIL)
        .when(is_used, F.when(in_time, PASS).otherwise(FAIL))
        .when(is_closed, PASS)
        .otherwise(F.when(in_time, INCONCLUSIVE).otherwise(FAIL))
    )
    member = "{name}{software}"
    text = (
        F.when(
            joined_again,
            join_text(
                f"{member} was assigned this id by ", F.col("text"), ", and joined without it: ", F.col("rejoin.text")
            ),
        )
        .when(
            is_used,
            join_text(
                f"{member} used its id ",
                seconds(F.col("waited_ms")),
                " s after it was assigned, ",
                F.col("text"),
                "; its session timeout is ",
                seconds(session_ms),
                " s",
            ),
        )
        .when(in_time, join_text(f"{member} has not used its id yet: ", F.col("text")))
        .otherwise(join_text(f"{member} has never used the id that was assigned by ", F.col("text")))
    )
    # a connection closed after the id was used does not matter
    last = F.coalesce("rejoin.seq", "use.seq", "closed_seq", "seq")
    return findings(judged, status, "seq", last, text=text, member="member_id")


def _response_position() -> Column:
    return F.struct(
        F.col("answered_seq").alias("seq"),
        F.col("answered_wall_us").alias("wall_us"),
        F.col("answered_group_us").alias("group_us"),
    )


def coordinator_lookup(inputs: CheckInput) -> DataFrame:
    """C02: a client can alternate endlessly between two brokers that each name the other (librdkafka #3396)."""
    moved = inputs.call.where("error = 'NOT_COORDINATOR' AND api <> 'FindCoordinator'")
    loops = _loops(moved, "client_id", "api")
    text = join_text(
        F.coalesce("client_id", F.lit("")),
        f" sent {LOOP_CALLS} requests within {LOOP_MS} ms to a node that is not the coordinator: ",
        call_text(),
    )
    endless = findings(loops, FAIL, "seq", text=text, member="member_id")

    refused_calls = moved.select(
        *CONNECTION,
        "member_id",
        "client_id",
        "api",
        "seq",
        _response_position().alias("since"),
        call_text().alias("text"),
    )
    later = inputs.call.where("api <> 'FindCoordinator'").select(
        *CONNECTION, "member_id", F.struct("seq", "wall_us", "group_us").alias("later"), call_text().alias("later_text")
    )
    had_time = at_least_ms(("since.wall_us", "since.group_us"), ("later.wall_us", "later.group_us")) > LOOKUP_MS
    # match by connection or by member id: two equi-joins instead of one comparison of all pairs
    keys = [[*CONNECTION], [*GROUP, "node", "member_id"]]
    # refused calls are few, so the other calls are not shuffled
    refused = F.broadcast(refused_calls.select(*CONNECTION, "member_id", "seq", "since"))
    following = (
        refused.join(later.drop("member_id"), keys[0])
        .select(*GROUP, "seq", "since", "later", "later_text")
        .unionByName(refused.join(later.drop("conn_id"), keys[1]).select(*GROUP, "seq", "since", "later", "later_text"))
        .where((F.col("later.seq") > F.col("since.seq")) & had_time)
        .groupBy(*GROUP, "seq")
        .agg(F.min(F.struct("later.seq", "later_text")).alias("following"))
    )
    lookups = inputs.call.where("api = 'FindCoordinator'").select(
        *GROUP, F.coalesce("client_id", F.lit("")).alias("name"), F.col("seq").alias("lookup_seq")
    )
    known = refused_calls.join(following, [*GROUP, "seq"], "left").withColumn(
        "name", F.coalesce("client_id", F.lit(""))
    )
    looked = (
        known.join(lookups, [*GROUP, "name"])
        .where("lookup_seq > since.seq AND (following IS NULL OR lookup_seq < following.seq)")
        .groupBy(*GROUP, "seq")
        .agg(F.min("lookup_seq").alias("lookup_seq"))
    )
    judged = known.join(looked, [*GROUP, "seq"], "left").join(inputs.closings, ["trace_id", "node", "conn_id"], "left")
    has_looked, has_reacted = F.col("lookup_seq").isNotNull(), F.col("following").isNotNull()
    status = (
        F.when(has_looked, PASS)
        .when(has_reacted, FAIL)
        .when(F.col("closed_seq").isNull() & (F.col("api") != "LeaveGroup"), INCONCLUSIVE)
    )
    text = F.when(
        has_reacted,
        join_text(F.col("text"), ", and retried without a FindCoordinator: ", F.col("following.later_text")),
    ).otherwise(join_text(F.col("text"), ", and has not looked up the coordinator yet"))
    last = F.coalesce("lookup_seq", "following.seq", "seq")
    return endless.unionByName(findings(judged, status, "seq", last, text=text, member="member_id"))


def _loops(calls: DataFrame, *same: str) -> DataFrame:
    """Return the calls that complete a loop: the last of LOOP_CALLS within LOOP_MS, with the first as `loop_seq`."""
    window = Window.partitionBy(*GROUP, *same).orderBy("seq")
    before = calls.withColumn(
        "first", F.lag(F.struct("seq", "wall_us", "group_us"), LOOP_CALLS - 1).over(window)
    ).withColumn("row", F.row_number().over(window))
    fast = (
        F.coalesce(
            at_least_ms(("first.wall_us", "first.group_us"), ("wall_us", "group_us")) <= LOOP_MS,
            F.lit(False),  # noqa: FBT003 - a value
        )
        & F.col("first").isNotNull()
    )
    # rows since the last slow call: every LOOP_CALLS-th call of a long loop completes another loop
    slow_row = F.max(F.when(~F.col("fast"), F.col("row"))).over(window)
    return (
        before.withColumn("fast", fast)
        .withColumn("nth", F.col("row") - F.coalesce(slow_row, F.lit(0)))
        .where(F.col("fast") & ((F.col("nth") - 1) % LOOP_CALLS == 0))
        .withColumn("loop_seq", F.col("first.seq"))
    )


def rejoin_in_time(inputs: CheckInput) -> DataFrame:
    """C08: a member that learns of a rebalance must rejoin within its rebalance timeout (KIP-62)."""
    requests = inputs.call.where("member_id IS NOT NULL")
    reacts = F.col("api").isin("JoinGroup", "LeaveGroup")
    is_notification = F.col("api").isin("Heartbeat", "SyncGroup") & (F.col("error") == "REBALANCE_IN_PROGRESS")
    calls = requests.where(reacts | is_notification).withColumn("reacts", reacts)
    # a notification takes effect with its response
    calls = calls.withColumn("at", F.when(reacts, F.col("seq")).otherwise(F.col("answered_seq")))
    by_seq = Window.partitionBy(*MEMBER).orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    joining = F.last(F.when(F.col("api") == "JoinGroup", F.struct("answered_seq")), ignorenulls=True).over(by_seq)
    timeout = F.last(F.when(F.col("api") == "JoinGroup", F.col("rebalance_timeout_ms")), ignorenulls=True)
    whole = Window.partitionBy(*MEMBER).orderBy("seq").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    reaction = F.when(
        F.col("reacts"),
        F.struct("seq", "wall_us", "group_us", "api", F.col("timeout_ms"), call_text().alias("text")),
    )
    removals = inputs.changes.where("change IN ('removed', 'replaced')").select(
        *MEMBER, F.col("seq").alias("at"), F.struct("seq", "wall_us", "group_us").alias("removal")
    )
    notified = (
        calls.withColumn("joining", joining)
        .withColumn("timeout_ms", timeout.over(by_seq))
        .withColumn("last_timeout_ms", timeout.over(whole))
        .unionByName(removals, allowMissingColumns=True)
        .withColumn("reaction", F.last(reaction, ignorenulls=True).over(after(*MEMBER)))
        .withColumn("removal", F.last("removal", ignorenulls=True).over(after(*MEMBER)))
        .where("NOT reacts")
        # a heartbeat beside a parked JoinGroup brings no news
        .where("joining IS NULL OR joining.answered_seq <= answered_seq")
    )
    first = F.row_number().over(Window.partitionBy(*MEMBER, "reaction.seq").orderBy("seq"))
    notified = (
        notified.withColumn("nth", first)
        .where("nth = 1")
        .withColumn("since", _response_position())
        .withColumn("text", call_text())
        .select(*MEMBER, "node", "conn_id", "seq", "at", "since", "text", "reaction", "removal", "last_timeout_ms")
    )
    # a member may have discarded its id and joined as a new member
    joins = inputs.call.where("api = 'JoinGroup'").select(*CONNECTION, F.col("seq").alias("at"), "seq")
    known = (
        notified.unionByName(joins.withColumnRenamed("seq", "new_join_seq"), allowMissingColumns=True)
        .withColumn("new_join_seq", F.last("new_join_seq", ignorenulls=True).over(after(*CONNECTION)))
        .where("since IS NOT NULL")
        .join(inputs.closings, ["trace_id", "node", "conn_id"], "left")
        .join(inputs.ends, [*GROUP], "left")
    )
    reaction_time = F.struct("reaction.seq", "reaction.wall_us", "reaction.group_us")
    until = F.coalesce(F.when(F.col("reaction").isNotNull(), reaction_time), "removal", "end")
    judged = inputs.with_waited_ms(known.withColumn("until", until))
    has_reacted, has_left = F.col("reaction").isNotNull(), F.col("reaction.api") == "LeaveGroup"
    limit = F.coalesce(F.when(has_reacted, F.col("reaction.timeout_ms")).otherwise(F.col("last_timeout_ms")), F.lit(0))
    late = F.col("waited_ms") > limit
    status = (
        F.when(has_left, PASS)
        .when(has_reacted, F.when(late, FAIL).otherwise(PASS))
        .when(F.col("new_join_seq").isNotNull(), PASS)
        .when(F.col("closed_seq").isNotNull(), None)
        .when(late, FAIL)
        .when(F.col("removal").isNull(), INCONCLUSIVE)
    )
    rest = join_text("; its rebalance timeout is ", seconds(limit), " s")
    text = (
        F.when(
            has_reacted,
            join_text(F.col("text"), "{software}, and joined again too late: ", F.col("reaction.text"), rest),
        )
        .when(late, join_text(F.col("text"), "{software}, and has not joined again", rest))
        .otherwise(join_text(F.col("text"), ", and has not joined again yet"))
    )
    last = F.coalesce("reaction.seq", "new_join_seq", "seq")
    return findings(judged, status, "seq", last, text=text, member="member_id")


def no_tight_loop(inputs: CheckInput) -> DataFrame:
    """C09: the same fatal error repeatedly on one connection, without a pause."""
    fatal = inputs.call.where(F.col("error").isin(*FATAL))
    loops = _loops(fatal, "node", "conn_id", "api", "error")
    text = join_text(
        F.coalesce("client_id", F.lit("")),
        f"{{software}} sent {LOOP_CALLS} requests within {LOOP_MS} ms: ",
        call_text(),
    )
    failures = findings(loops, FAIL, "loop_seq", "seq", text=text, member="member_id")
    # failures decide the verdict, so counting these calls as passed, too, does no harm
    return failures.unionByName(findings(fatal, PASS, "seq", member="member_id"))
