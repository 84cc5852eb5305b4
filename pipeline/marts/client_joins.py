"""C01, C02, C08 and C09: how clients join, find their coordinator, and take an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .judging import FAIL, GROUP, INCONCLUSIVE, PASS, after, at_least_ms, found, said, seconds, texts
from .story import CONNECTION, MEMBER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .story import Story

LOOKUP_MS = 1000
"""So long a client may take to look for its coordinator, and ask the old one meanwhile: librdkafka looks twice a second
at most, and goes on beating until then."""

LOOP_CALLS, LOOP_MS = 15, 1000
"""The same refusal so many times within so long is a loop without a pause: clients' `retry.backoff.ms` is 100."""

FATAL = ("FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL")
"""Errors that asking again does not help against."""


def given_id_is_used(story: Story) -> DataFrame:
    """C01. KIP-394; librdkafka #5569: an id that is not used holds up the group until it expires."""
    sent_off = F.when(
        F.col("asked_as").isNull() & F.col("instance_id").isNull(), F.struct("seq", F.col("text").alias("text"))
    )
    given = (
        story.call.where("api = 'JoinGroup'")
        .withColumn("text", said())
        .withColumn("at", F.col("seq"))
        .withColumn("anew", F.last(sent_off, ignorenulls=True).over(after(*CONNECTION, "client_id")))
        .where("error = 'MEMBER_ID_REQUIRED' AND member_id IS NOT NULL")
        .withColumn("since", _answer())
        .select(*MEMBER, "node", "conn_id", "seq", "session_timeout_ms", "text", "anew", "since")
    )
    uses = story.call.where("asked_as IS NOT NULL").select(
        *GROUP, F.col("asked_as").alias("member_id"), F.col("seq").alias("use_seq"), "wall_us", "group_us"
    )
    answers = given.select(*MEMBER, "seq", F.col("since.seq").alias("since_seq")).hint("shuffle_hash")
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
        given.join(first_use, [*MEMBER, "seq"], "left")
        .withColumn("anew", F.when(F.expr("use IS NULL OR anew.seq <= use.seq"), F.col("anew")))
        .join(story.closings, ["trace_id", "node", "conn_id"], "left")
        .join(story.ends, [*GROUP], "left")
    )
    judged = story.less_held(known.withColumn("until", F.coalesce("use", "end")))
    session_ms = F.coalesce("session_timeout_ms", F.lit(0))
    in_time = F.col("waited_ms") <= session_ms
    is_used, gone = F.col("use").isNotNull(), F.col("closed_seq").isNotNull()
    again = F.col("anew").isNotNull()
    status = (
        F.when(again, FAIL)
        .when(is_used, F.when(in_time, PASS).otherwise(FAIL))
        .when(gone, PASS)
        .otherwise(F.when(in_time, INCONCLUSIVE).otherwise(FAIL))
    )
    who = "{name}{software}"
    text = (
        F.when(
            again,
            texts(f"{who} was assigned this id by ", F.col("text"), ", and joined without it: ", F.col("anew.text")),
        )
        .when(
            is_used,
            texts(
                f"{who} used its id ",
                seconds(F.col("waited_ms")),
                " s after it was assigned, ",
                F.col("text"),
                "; its session timeout is ",
                seconds(session_ms),
                " s",
            ),
        )
        .when(in_time, texts(f"{who} has not used its id yet: ", F.col("text")))
        .otherwise(texts(f"{who} has never used the id that was assigned by ", F.col("text")))
    )
    # once it is used it does not matter that its connection was closed later
    last = F.coalesce("anew.seq", "use.seq", "closed_seq", "seq")
    return found(judged, status, "seq", last, text=text, member="member_id")


def _answer() -> Column:
    return F.struct(
        F.col("answered_seq").alias("seq"),
        F.col("answered_wall_us").alias("wall_us"),
        F.col("answered_group_us").alias("group_us"),
    )


def coordinator_is_looked_for(story: Story) -> DataFrame:
    """C02. librdkafka #3396: for ever between a broker that says "ask 2" and broker 2 that says "not me"."""
    moved = story.call.where("error = 'NOT_COORDINATOR' AND api <> 'FindCoordinator'")
    loops = _loops(moved, "client_id", "api")
    told = texts(
        F.coalesce("client_id", F.lit("")),
        f" sent {LOOP_CALLS} requests within {LOOP_MS} ms to a node that is not the coordinator: ",
        said(),
    )
    endless = found(loops, FAIL, "seq", text=told, member="member_id")

    one = moved.select(
        *CONNECTION, "member_id", "client_id", "api", "seq", _answer().alias("since"), said().alias("text")
    )
    later = story.call.where("api <> 'FindCoordinator'").select(
        *CONNECTION, "member_id", F.struct("seq", "wall_us", "group_us").alias("later"), said().alias("later_text")
    )
    had_time = at_least_ms(("since.wall_us", "since.group_us"), ("later.wall_us", "later.group_us")) > LOOKUP_MS
    # by its connection or by its member id: two equal joins instead of one that compares everything with everything
    same = [[*CONNECTION], [*GROUP, "node", "member_id"]]
    # who was refused are few: all other calls stay where they are
    refused = F.broadcast(one.select(*CONNECTION, "member_id", "seq", "since"))
    following = (
        refused.join(later.drop("member_id"), same[0])
        .select(*GROUP, "seq", "since", "later", "later_text")
        .unionByName(refused.join(later.drop("conn_id"), same[1]).select(*GROUP, "seq", "since", "later", "later_text"))
        .where((F.col("later.seq") > F.col("since.seq")) & had_time)
        .groupBy(*GROUP, "seq")
        .agg(F.min(F.struct("later.seq", "later_text")).alias("following"))
    )
    lookups = story.call.where("api = 'FindCoordinator'").select(
        *GROUP, F.coalesce("client_id", F.lit("")).alias("name"), F.col("seq").alias("lookup_seq")
    )
    known = one.join(following, [*GROUP, "seq"], "left").withColumn("name", F.coalesce("client_id", F.lit("")))
    looked = (
        known.join(lookups, [*GROUP, "name"])
        .where("lookup_seq > since.seq AND (following IS NULL OR lookup_seq < following.seq)")
        .groupBy(*GROUP, "seq")
        .agg(F.min("lookup_seq").alias("lookup_seq"))
    )
    judged = known.join(looked, [*GROUP, "seq"], "left").join(story.closings, ["trace_id", "node", "conn_id"], "left")
    has_looked, has_gone_on = F.col("lookup_seq").isNotNull(), F.col("following").isNotNull()
    status = (
        F.when(has_looked, PASS)
        .when(has_gone_on, FAIL)
        .when(F.col("closed_seq").isNull() & (F.col("api") != "LeaveGroup"), INCONCLUSIVE)
    )
    text = F.when(
        has_gone_on,
        texts(F.col("text"), ", and retried without a FindCoordinator: ", F.col("following.later_text")),
    ).otherwise(texts(F.col("text"), ", and has not looked up the coordinator yet"))
    last = F.coalesce("lookup_seq", "following.seq", "seq")
    return endless.unionByName(found(judged, status, "seq", last, text=text, member="member_id"))


def _loops(calls: DataFrame, *same: str) -> DataFrame:
    """The calls that are the last of LOOP_CALLS within LOOP_MS; `loop_seq` is the first. Each call is in one loop."""
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
    # rows since the last that was slow: of a loop that goes on every LOOP_CALLS-th is one loop more
    slow_row = F.max(F.when(~F.col("fast"), F.col("row"))).over(window)
    return (
        before.withColumn("fast", fast)
        .withColumn("nth", F.col("row") - F.coalesce(slow_row, F.lit(0)))
        .where(F.col("fast") & ((F.col("nth") - 1) % LOOP_CALLS == 0))
        .withColumn("loop_seq", F.col("first.seq"))
    )


def rejoins(story: Story) -> DataFrame:
    """C08. KIP-62: whoever is told of a rebalance has its rebalance timeout to join again."""
    asks = story.call.where("member_id IS NOT NULL")
    goes_on = F.col("api").isin("JoinGroup", "LeaveGroup")
    news = F.col("api").isin("Heartbeat", "SyncGroup") & (F.col("error") == "REBALANCE_IN_PROGRESS")
    calls = asks.where(goes_on | news).withColumn("goes_on", goes_on)
    # what it was told counts from when it was told
    calls = calls.withColumn("at", F.when(goes_on, F.col("seq")).otherwise(F.col("answered_seq")))
    by_seq = Window.partitionBy(*MEMBER).orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    joining = F.last(F.when(F.col("api") == "JoinGroup", F.struct("answered_seq")), ignorenulls=True).over(by_seq)
    timeout = F.last(F.when(F.col("api") == "JoinGroup", F.col("rebalance_timeout_ms")), ignorenulls=True)
    whole = Window.partitionBy(*MEMBER).orderBy("seq").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    going_on = F.when(
        F.col("goes_on"),
        F.struct("seq", "wall_us", "group_us", "api", F.col("timeout_ms"), said().alias("text")),
    )
    removals = story.changes.where("change IN ('removed', 'replaced')").select(
        *MEMBER, F.col("seq").alias("at"), F.struct("seq", "wall_us", "group_us").alias("removal")
    )
    told = (
        calls.withColumn("joining", joining)
        .withColumn("timeout_ms", timeout.over(by_seq))
        .withColumn("last_timeout_ms", timeout.over(whole))
        .unionByName(removals, allowMissingColumns=True)
        .withColumn("going_on", F.last(going_on, ignorenulls=True).over(after(*MEMBER)))
        .withColumn("removal", F.last("removal", ignorenulls=True).over(after(*MEMBER)))
        .where("NOT goes_on")
        # a heartbeat beside a JoinGroup that waits is told nothing new
        .where("joining IS NULL OR joining.answered_seq <= answered_seq")
    )
    first = F.row_number().over(Window.partitionBy(*MEMBER, "going_on.seq").orderBy("seq"))
    told = (
        told.withColumn("nth", first)
        .where("nth = 1")
        .withColumn("since", _answer())
        .withColumn("text", said())
        .select(*MEMBER, "node", "conn_id", "seq", "at", "since", "text", "going_on", "removal", "last_timeout_ms")
    )
    # it may have forgotten its id, for a good reason or not, and is a new member now
    joins = story.call.where("api = 'JoinGroup'").select(*CONNECTION, F.col("seq").alias("at"), "seq")
    known = (
        told.unionByName(joins.withColumnRenamed("seq", "anew_seq"), allowMissingColumns=True)
        .withColumn("anew_seq", F.last("anew_seq", ignorenulls=True).over(after(*CONNECTION)))
        .where("since IS NOT NULL")
        .join(story.closings, ["trace_id", "node", "conn_id"], "left")
        .join(story.ends, [*GROUP], "left")
    )
    going_on_at = F.struct("going_on.seq", "going_on.wall_us", "going_on.group_us")
    until = F.coalesce(F.when(F.col("going_on").isNotNull(), going_on_at), "removal", "end")
    judged = story.less_held(known.withColumn("until", until))
    has_gone_on, has_left = F.col("going_on").isNotNull(), F.col("going_on.api") == "LeaveGroup"
    limit = F.coalesce(F.when(has_gone_on, F.col("going_on.timeout_ms")).otherwise(F.col("last_timeout_ms")), F.lit(0))
    late = F.col("waited_ms") > limit
    status = (
        F.when(has_left, PASS)
        .when(has_gone_on, F.when(late, FAIL).otherwise(PASS))
        .when(F.col("anew_seq").isNotNull(), PASS)
        .when(F.col("closed_seq").isNotNull(), None)
        .when(late, FAIL)
        .when(F.col("removal").isNull(), INCONCLUSIVE)
    )
    rest = texts("; its rebalance timeout is ", seconds(limit), " s")
    text = (
        F.when(
            has_gone_on, texts(F.col("text"), "{software}, and joined again too late: ", F.col("going_on.text"), rest)
        )
        .when(late, texts(F.col("text"), "{software}, and has not joined again", rest))
        .otherwise(texts(F.col("text"), ", and has not joined again yet"))
    )
    last = F.coalesce("going_on.seq", "anew_seq", "seq")
    return found(judged, status, "seq", last, text=text, member="member_id")


def no_tight_loop(story: Story) -> DataFrame:
    """C09. The same fatal error on one connection again and again, and the client does not pause."""
    fatal = story.call.where(F.col("error").isin(*FATAL))
    loops = _loops(fatal, "node", "conn_id", "api", "error")
    text = texts(
        F.coalesce("client_id", F.lit("")), f"{{software}} sent {LOOP_CALLS} requests within {LOOP_MS} ms: ", said()
    )
    wrong = found(loops, FAIL, "loop_seq", "seq", text=text, member="member_id")
    # what ends a loop is wrong, and decides; that it is counted as right, too, is of no account
    return wrong.unionByName(found(fatal, PASS, "seq", member="member_id"))
