"""gold/rebalance: every rebalance with its cause, its duration, and the partitions it moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns
from ..silver.group_columns import GROUP_KEY, ROUND_KEY, fetches_by_member, ms, wall_time, with_member_name
from ..silver.round import with_rebalance_no
from ..vocabulary import SUB_CAUSES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

INCREMENTAL = ("compatible", "sessioned", "stream")
"""Incremental protocols without `cooperative` in their name: Kafka Connect (KIP-415) and Kafka Streams."""

REJOINS = ("member_rejoin", "leader_rejoin", "metadata_change")
"""Causes of rebalances that an existing member triggers."""


def rebalance(  # noqa: PLR0913, PLR0917 - a table each
    event: DataFrame,
    call: DataFrame,
    member_span: DataFrame,
    round_: DataFrame,
    arrival: DataFrame,
    move: DataFrame,
    trace: DataFrame,
) -> DataFrame:
    """Return gold/rebalance: silver/round with columns from all other tables."""
    rounds = (
        round_.join(_arrivals(arrival), [*ROUND_KEY], "left")
        .join(_generation_members(arrival, member_span, move), [*ROUND_KEY], "left")
        .join(_moved(move), [*ROUND_KEY], "left")
        .join(_first_fetches(event, call, member_span, round_), [*ROUND_KEY], "left")
    )
    return with_trace_columns(_columns(_with_history(rounds)), trace, schema.REBALANCE)


def _arrivals(arrival: DataFrame) -> DataFrame:
    """Return the protocol of each rebalance, and its last two members in the order of their last JoinGroup."""
    arrival_ = F.struct("last_joined_seq", "last_joined_us", "member")
    return (
        arrival.groupBy(*ROUND_KEY)
        .agg(
            F.max("protocol").alias("protocol"),
            F.max("owns").alias("any_owns"),
            F.sort_array(F.collect_list(arrival_), asc=False).alias("newest"),
        )
        .withColumn("next_to_newest", F.get("newest", F.lit(1)))
        .withColumn("newest", F.get("newest", F.lit(0)))
    )


def _generation_members(arrival: DataFrame, member_span: DataFrame, move: DataFrame) -> DataFrame:
    """Return the size of the generation that each rebalance formed, and its members' history.

    The members are those in the leader's response; if that is missing, those that joined. Their history: the last
    rebalance of each member before this one, and the number of today's partitions that it owned last.
    """
    listed = F.min(F.when(F.col("members").isNotNull(), F.struct("joined_seq", "members"))).getField("members")
    ids = (
        arrival.groupBy(*ROUND_KEY)
        .agg(listed.alias("listed"), F.collect_set("member_id").alias("ids"))
        .select(*ROUND_KEY, F.explode(F.coalesce("listed", "ids")).alias("member_id"))
    )
    is_static = F.max(F.col("member") != F.col("member_id"))
    owned = (
        move.where(_had_owner()).groupBy(*ROUND_KEY, F.col("old_member").alias("member")).agg(F.count("*").alias("had"))
    )
    own = Window.partitionBy(*GROUP_KEY, "member").orderBy("rebalance_no")
    return (
        with_member_name(ids, member_span, "member_id", "member")
        .groupBy(*ROUND_KEY, "member")
        .agg(is_static.alias("is_static"))
        .withColumn("seen_in", F.lag("rebalance_no").over(own))
        .join(owned, [*ROUND_KEY, "member"], "left")
        .groupBy(*ROUND_KEY)
        .agg(
            F.count("*").cast("int").alias("n_members"),
            F.count(F.when(F.col("is_static"), 1)).cast("int").alias("n_static"),
            F.collect_list("seen_in").alias("seen_in"),
            F.collect_list("had").alias("had"),
        )
    )


def _had_owner() -> Column:
    """Return whether an assigned partition had an owner before, and the group was not empty since."""
    return F.col("new_member").isNotNull() & F.col("is_life") & F.col("old_member").isNotNull()


def _moved(move: DataFrame) -> DataFrame:
    """Return the number of moved partitions, and the members that lost a partition which is now unassigned."""
    moved = _had_owner() & (F.col("old_member") != F.col("new_member"))
    return move.groupBy(*ROUND_KEY).agg(
        F.count("new_member").cast("int").alias("partitions_total"),
        F.count(F.when(moved, 1)).cast("int").alias("partitions_moved"),
        F.count(F.when(_had_owner(), 1)).cast("int").alias("owned"),
        F.collect_set(F.when(F.col("new_member").isNull(), F.col("old_member"))).alias("losers"),
    )


def _moves_minimum() -> Column:
    """Return the fewest moves of any balanced assignment, or of this one if it moved fewer.

    In a balanced assignment each of M members has P // M partitions, and P % M of them have one more. So a member can
    keep at most P // M of its partitions, or one more.
    """
    total, members = F.col("partitions_total"), F.col("n_members")
    fair = F.floor(total / members)
    kept = F.aggregate("had", F.lit(0).cast("long"), lambda sum_, n: sum_ + F.least(n, fair))
    one_more = F.least(F.size(F.filter("had", lambda n: n > fair)), total % members)
    return F.least(F.col("owned") - kept - one_more, F.col("partitions_moved"))


def _first_fetches(event: DataFrame, call: DataFrame, member_span: DataFrame, round_: DataFrame) -> DataFrame:
    """Return the first OffsetFetch of the group, or Fetch of a member, after each completed rebalance."""
    columns = (*GROUP_KEY, "seq", "wall_us", "group_us")
    offset_fetches = call.where(F.col("api") == "OffsetFetch").select(*columns)
    all_fetches = offset_fetches.unionByName(fetches_by_member(event, member_span).select(*columns))
    ended = round_.where(F.col("outcome") == "completed").select(*ROUND_KEY, "end_seq")
    return (
        with_rebalance_no(all_fetches, round_)
        .join(ended, [*ROUND_KEY])
        .where(F.col("seq") > F.col("end_seq"))
        .groupBy(*ROUND_KEY)
        .agg(F.min(F.struct("seq", "wall_us", "group_us")).alias("fetch"))
    )


def _with_history(rounds: DataFrame) -> DataFrame:
    """Add the columns that depend on earlier rebalances: the previous members, cooperative follow-ups, storms."""
    in_order = Window.partitionBy(*GROUP_KEY).orderBy("rebalance_no")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    emptied = F.col("outcome") == "emptied"
    # a log has the number of members only
    members = F.when(emptied, F.lit(0)).otherwise(F.coalesce("n_members", "told_members"))
    last = F.when(F.col("members_after").isNotNull(), F.struct("rebalance_no", "members_after", "n_members"))
    protocol = F.lower("protocol")
    incremental = protocol.contains("cooperative") | protocol.isin(*INCREMENTAL) | F.col("any_owns")
    mode = F.when(F.col("protocol").isNotNull(), F.when(incremental, "cooperative").otherwise("eager"))
    since_us = F.col("start_us") - F.lag("end_us").over(in_order)
    apart = F.coalesce(since_us > schema.STORM_GAP_MS * 1000, F.lit(col=True))
    storm = Window.partitionBy(*GROUP_KEY, "storm_no")
    first = F.min("rebalance_no").over(storm).cast("string")
    return (
        rounds.withColumn("members_after", members)
        .withColumn("base", F.last(last, ignorenulls=True).over(before))
        .withColumn("mode", mode)
        .withColumn("mode_before", F.lag("mode").over(in_order))
        .withColumn("losers_before", F.lag("losers").over(in_order))
        .withColumn("sub_cause", sub_cause("client_reason"))
        .withColumn("storm_no", F.sum(apart.cast("int")).over(in_order))
        .withColumn("storm_id", F.when(F.count("*").over(storm) > 1, F.concat_ws("/", "trace_id", "group_id", first)))
    )


def _columns(rounds: DataFrame) -> DataFrame:
    joined = F.col("join_seq").isNotNull()
    formed = F.col("gen_after").isNotNull()
    completed = F.col("outcome") == "completed"
    emptied = F.col("outcome") == "emptied"
    moved = F.col("partitions_moved")
    # a group older than the trace is unknown; a group in generation 0 is new
    n_before = F.coalesce("base.members_after", F.when(F.col("gen_before") == 0, F.lit(0)))
    stayed = F.size(F.filter("seen_in", lambda number: number == F.col("base.rebalance_no")))
    known = F.col("base.n_members").isNotNull() | (n_before == 0)
    n_joined = F.when(emptied, 0).when(known, F.col("n_members") - F.coalesce(stayed, F.lit(0)))
    n_static = F.when(joined, F.coalesce("n_static", "told_static"))
    late = F.col("late_member")
    wait_us = F.when(late.isNotNull(), F.col("over_us") - F.col("newest.last_joined_us")).when(
        F.col("next_to_newest").isNotNull(), F.col("newest.last_joined_us") - F.col("next_to_newest.last_joined_us")
    )
    # Fetch names no group: its group time is that of the rebalance's end plus the wall clock time since
    fetch_us = F.coalesce("fetch.group_us", F.col("end_us") + F.col("fetch.wall_us") - F.col("end_wall_us"))
    may_follow_up = (F.col("mode_before") == "cooperative") & F.col("cause").isin(*REJOINS)
    followup = (F.col("sub_cause") == "revoke_and_rejoin") | (
        may_follow_up & F.array_contains("losers_before", F.col("trigger_member"))
    )
    straggler = F.coalesce(late, F.when(F.col("next_to_newest").isNotNull(), F.col("newest.member")))
    timed = {
        "started_at": wall_time("start_wall_us"),
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
        "straggler_member": F.when(formed, straggler),
        "straggler_wait_ms": F.when(formed, wait_us) / 1000,
        "straggler_share": F.when(formed & (F.col("over_us") > F.col("start_us")), wait_us)
        / (F.col("over_us") - F.col("start_us")),
        "moves_minimum": _moves_minimum(),
        "stickiness": F.when(moved == 0, 1.0).otherwise(_moves_minimum() / moved),
        "followup": F.coalesce(followup, F.lit(col=False)),
    }
    return rounds.withColumns({**timed, **counted})


def _membership(static: Column, members: Column) -> Column:
    return F.when((static == 0) & (members > 0), "dynamic").when(static == members, "static").when(static > 0, "mixed")


def sub_cause(client_reason: str) -> Column:
    """Return the category of a client's own reason (KIP-800); null without a reason, "other" if it is unknown."""
    text = F.col(client_reason)
    kind = F.when(F.coalesce(text, F.lit("")) == "", F.lit(None).cast("string"))
    for name, pattern in SUB_CAUSES:
        kind = kind.when(text.rlike(f"(?i){pattern}"), name)
    return kind.otherwise("other")
