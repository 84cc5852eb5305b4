"""gold/rebalance: every rebalance, why it was, what it took, and what it moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import GROUP, ROUND, at, fetches, ms, named
from ..silver.round import numbered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SUB_CAUSES = (
    ("poll_timeout", r"poll timeout has expired|max\.?poll\.?interval"),
    ("revoke_and_rejoin", r"revoke partitions and re-?join"),
    ("member_id_required", r"member.?id.?required|with the given member.?id"),
    ("already_rebalancing", r"already rebalancing|rebalance in progress"),
    ("failed", r"rebalance failed due to|encountered .* from .* response"),
    ("metadata_changed", r"metadata .*chang"),
    ("subscription_changed", r"subscription .*chang"),
    ("unsubscribed", r"unsubscribe"),
    ("enforced", r"enforce"),
    ("closed", r"clos|shut"),
)
"""The kinds of reasons that clients give, by what Java's consumer and those that follow it write; as the emulator's."""

INCREMENTAL = ("compatible", "sessioned", "stream")
"""Protocols without `cooperative` in their name whose members keep what they own: Connect's (KIP-415), Streams'."""

REJOINS = ("member_rejoin", "leader_rejoin", "metadata_change")
"""The causes of a rebalance that a member begins which is in the group already."""


def rebalance(  # noqa: PLR0913, PLR0917 - a table each
    event: DataFrame,
    call: DataFrame,
    member_span: DataFrame,
    round_: DataFrame,
    arrival: DataFrame,
    move: DataFrame,
    trace: DataFrame,
) -> DataFrame:
    """gold/rebalance: silver/round, and what all the others know of each of its rows."""
    found = (
        round_.join(_arrivals(arrival), [*ROUND], "left")
        .join(_members(arrival, member_span, move), [*ROUND], "left")
        .join(_moved(move), [*ROUND], "left")
        .join(_first_fetches(event, call, member_span, round_), [*ROUND], "left")
    )
    return whose(_columns(_beside(found)), trace, schema.REBALANCE)


def _arrivals(arrival: DataFrame) -> DataFrame:
    """What those who joined were told, and the last two of them, by the last JoinGroup of each."""
    who = F.struct("last_joined_seq", "last_joined_us", "member")
    return (
        arrival.groupBy(*ROUND)
        .agg(
            F.max("protocol").alias("protocol"),
            F.max("owns").alias("somebody_owns"),
            F.sort_array(F.collect_list(who), asc=False).alias("newest"),
        )
        .withColumn("next_to_newest", F.get("newest", F.lit(1)))
        .withColumn("newest", F.get("newest", F.lit(0)))
    )


def _members(arrival: DataFrame, member_span: DataFrame, move: DataFrame) -> DataFrame:
    """Who is in the generation of a rebalance: whom its leader was told of; if that is missing, who joined.

    How many they are, in which rebalance before each was last, and of how many partitions of now it was the last owner.
    """
    listed = F.min(F.when(F.col("members").isNotNull(), F.struct("joined_seq", "members"))).getField("members")
    ids = (
        arrival.groupBy(*ROUND)
        .agg(listed.alias("listed"), F.collect_set("member_id").alias("ids"))
        .select(*ROUND, F.explode(F.coalesce("listed", "ids")).alias("member_id"))
    )
    is_static = F.max(F.col("member") != F.col("member_id"))
    had = move.where(_had_owner()).groupBy(*ROUND, F.col("old_member").alias("member")).agg(F.count("*").alias("had"))
    own = Window.partitionBy(*GROUP, "member").orderBy("rebalance_no")
    return (
        named(ids, member_span, "member_id", "member")
        .groupBy(*ROUND, "member")
        .agg(is_static.alias("is_static"))
        .withColumn("seen_in", F.lag("rebalance_no").over(own))
        .join(had, [*ROUND, "member"], "left")
        .groupBy(*ROUND)
        .agg(
            F.count("*").cast("int").alias("n_members"),
            F.count(F.when(F.col("is_static"), 1)).cast("int").alias("n_static"),
            F.collect_list("seen_in").alias("seen_in"),
            F.collect_list("had").alias("had"),
        )
    )


def _had_owner() -> Column:
    """Whether a partition that is somebody's now was somebody's before, and the group has not been empty since."""
    return F.col("new_member").isNotNull() & F.col("is_life") & F.col("old_member").isNotNull()


def _moved(move: DataFrame) -> DataFrame:
    """What an assignment moved, and who has lost what nobody has now."""
    moved = _had_owner() & (F.col("old_member") != F.col("new_member"))
    return move.groupBy(*ROUND).agg(
        F.count("new_member").cast("int").alias("partitions_total"),
        F.count(F.when(moved, 1)).cast("int").alias("partitions_moved"),
        F.count(F.when(_had_owner(), 1)).cast("int").alias("owned"),
        F.collect_set(F.when(F.col("new_member").isNull(), F.col("old_member"))).alias("losers"),
    )


def _moves_minimum() -> Column:
    """The fewest moves of a balanced assignment, or of this one if it moved fewer.

    Balanced: each of M members has P // M partitions, or one more, as P % M of them must. So a member keeps of what it
    had P // M at most, or one more.
    """
    total, members = F.col("partitions_total"), F.col("n_members")
    fair = F.floor(total / members)
    kept = F.aggregate("had", F.lit(0).cast("long"), lambda sum_, n: sum_ + F.least(n, fair))
    one_more = F.least(F.size(F.filter("had", lambda n: n > fair)), total % members)
    return F.least(F.col("owned") - kept - one_more, F.col("partitions_moved"))


def _first_fetches(event: DataFrame, call: DataFrame, member_span: DataFrame, round_: DataFrame) -> DataFrame:
    """The first OffsetFetch of the group, or Fetch of a member, between a rebalance that completed and the next."""
    columns = (*GROUP, "seq", "wall_us", "group_us")
    looked = call.where(F.col("api") == "OffsetFetch").select(*columns)
    came = looked.unionByName(fetches(event, member_span).select(*columns))
    ended = round_.where(F.col("outcome") == "completed").select(*ROUND, "end_seq")
    return (
        numbered(came, round_)
        .join(ended, [*ROUND])
        .where(F.col("seq") > F.col("end_seq"))
        .groupBy(*ROUND)
        .agg(F.min(F.struct("seq", "wall_us", "group_us")).alias("fetch"))
    )


def _beside(found: DataFrame) -> DataFrame:
    """What depends on the rebalances before: the members there were, a cooperative follow-up, storms."""
    in_order = Window.partitionBy(*GROUP).orderBy("rebalance_no")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    emptied = F.col("outcome") == "emptied"
    # those of a log are told in numbers only
    members = F.when(emptied, F.lit(0)).otherwise(F.coalesce("n_members", "told_members"))
    made = F.when(F.col("members_after").isNotNull(), F.struct("rebalance_no", "members_after", "n_members"))
    protocol = F.lower("protocol")
    incremental = protocol.contains("cooperative") | protocol.isin(*INCREMENTAL) | F.col("somebody_owns")
    mode = F.when(F.col("protocol").isNotNull(), F.when(incremental, "cooperative").otherwise("eager"))
    since_us = F.col("start_us") - F.lag("end_us").over(in_order)
    apart = F.coalesce(since_us > schema.STORM_GAP_MS * 1000, F.lit(col=True))
    storm = Window.partitionBy(*GROUP, "storm_no")
    first = F.min("rebalance_no").over(storm).cast("string")
    return (
        found.withColumn("members_after", members)
        .withColumn("base", F.last(made, ignorenulls=True).over(before))
        .withColumn("mode", mode)
        .withColumn("mode_before", F.lag("mode").over(in_order))
        .withColumn("losers_before", F.lag("losers").over(in_order))
        .withColumn("sub_cause", sub_cause("client_reason"))
        .withColumn("storm_no", F.sum(apart.cast("int")).over(in_order))
        .withColumn("storm_id", F.when(F.count("*").over(storm) > 1, F.concat_ws("/", "trace_id", "group_id", first)))
    )


def _columns(found: DataFrame) -> DataFrame:
    joined = F.col("join_seq").isNotNull()
    made = F.col("gen_after").isNotNull()
    completed = F.col("outcome") == "completed"
    emptied = F.col("outcome") == "emptied"
    moved = F.col("partitions_moved")
    # a group that was there before the trace is unknown, and one in generation 0 is new
    n_before = F.coalesce("base.members_after", F.when(F.col("gen_before") == 0, F.lit(0)))
    stayed = F.size(F.filter("seen_in", lambda number: number == F.col("base.rebalance_no")))
    known = F.col("base.n_members").isNotNull() | (n_before == 0)
    n_joined = F.when(emptied, 0).when(known, F.col("n_members") - F.coalesce(stayed, F.lit(0)))
    n_static = F.when(joined, F.coalesce("n_static", "told_static"))
    late = F.col("late_member")
    wait_us = F.when(late.isNotNull(), F.col("over_us") - F.col("newest.last_joined_us")).when(
        F.col("next_to_newest").isNotNull(), F.col("newest.last_joined_us") - F.col("next_to_newest.last_joined_us")
    )
    # Fetch names no group: its time is the rebalance's, and what has passed since by the wall's clock
    fetch_us = F.coalesce("fetch.group_us", F.col("end_us") + F.col("fetch.wall_us") - F.col("end_wall_us"))
    asked_to = (F.col("mode_before") == "cooperative") & F.col("cause").isin(*REJOINS)
    followup = (F.col("sub_cause") == "revoke_and_rejoin") | (
        asked_to & F.array_contains("losers_before", F.col("trigger_member"))
    )
    straggler = F.coalesce(late, F.when(F.col("next_to_newest").isNotNull(), F.col("newest.member")))
    timed = {
        "started_at": at("start_wall_us"),
        "t_start_us": F.col("start_us"),
        "t_join_done_us": F.col("over_us"),
        "t_sync_done_us": F.when(completed, F.col("end_us")),
        "t_first_fetch_us": fetch_us,
        "join_ms": ms("start_us", "over_us"),
        "sync_ms": F.when(joined & completed, ms("over_us", "end_us")),
        "total_ms": ms("start_us", "end_us"),
        "resume_ms": (fetch_us - F.col("start_us")) / 1000,
    }
    counted = {
        "members_before": n_before,
        "n_joined": n_joined,
        "n_left": n_before - F.col("members_after") + n_joined,
        "n_static": n_static,
        "membership": _membership(n_static, F.col("members_after")),
        "straggler_member": F.when(made, straggler),
        "straggler_wait_ms": F.when(made, wait_us) / 1000,
        "straggler_share": F.when(made & (F.col("over_us") > F.col("start_us")), wait_us)
        / (F.col("over_us") - F.col("start_us")),
        "moves_minimum": _moves_minimum(),
        "stickiness": F.when(moved == 0, 1.0).otherwise(_moves_minimum() / moved),
        "followup": F.coalesce(followup, F.lit(col=False)),
    }
    return found.withColumns({**timed, **counted})


def _membership(static: Column, members: Column) -> Column:
    return F.when((static == 0) & (members > 0), "dynamic").when(static == members, "static").when(static > 0, "mixed")


def sub_cause(client_reason: str) -> Column:
    """The kind of a client's own reason (KIP-800); null if it gave none, "other" for one that is not known here."""
    text = F.col(client_reason)
    kind = F.when(F.coalesce(text, F.lit("")) == "", F.lit(None).cast("string"))
    for name, pattern in SUB_CAUSES:
        kind = kind.when(text.rlike(f"(?i){pattern}"), name)
    return kind.otherwise("other")
