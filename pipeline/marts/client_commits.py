"""C03 and C10: commits that come from the past, and commits that do not come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .judging import FAIL, GROUP, INCONCLUSIVE, OK, PASS, found, said, texts
from .story import MEMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .story import Story

COOPERATIVE = "%cooperative%"
"""What the names of incremental assignors have in common."""


def no_old_generation(story: Story) -> DataFrame:
    """C03. A commit in generation n of a member that has been told of a newer one by the answer to its JoinGroup."""
    commits = story.call.where("api = 'OffsetCommit' AND generation >= 0")
    calls = commits.unionByName(story.call.where("formed IS NOT NULL")).withColumn(
        # what a JoinGroup was told counts from its answer on
        "at",
        F.when(F.col("formed").isNotNull(), F.col("answered_seq")).otherwise(F.col("seq")),
    )
    before = Window.partitionBy(*MEMBER).orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    join = F.when(F.col("formed").isNotNull(), F.struct("formed", "seq", said().alias("text")))
    judged = calls.withColumn("newest", F.max(join).over(before)).where("api = 'OffsetCommit'")
    newer = F.coalesce(F.col("newest.formed") > F.col("generation"), F.lit(False))  # noqa: FBT003 - a value
    return found(
        judged,
        F.when(newer, FAIL).otherwise(PASS),
        "seq",
        F.when(newer, F.col("newest.seq")).otherwise(F.col("seq")),
        text=texts(said(), "{software}, after ", F.col("newest.text")),
        member="member_id",
    )


def committed_before_revoke(story: Story) -> DataFrame:
    """C10. A member that was given records commits before it gives its partitions up: it joins anew, or leaves.

    Only the eager protocol gives everything up to join. Whether the member commits automatically, and whether the
    application was given what the client fetched, cannot be seen: so what is missing is unclear. Members that never
    commit are not judged. Records fetched after the member was told of the rebalance do not count.
    """
    revokes = _revokes(story).join(_alone(story), [*MEMBER]).where("has_committed")
    since = revokes.withColumn("since_seq", F.coalesce("commit_seq", "first_seq"))
    asked = since.where("is_alone").select("trace_id", "client_id", F.col("since_seq").alias("at")).distinct()
    fetches = story.event.where("kind = 'response' AND api = 'Fetch' AND error IS NULL").select(
        "trace_id", F.coalesce("client_id", F.lit("")).alias("client_id"), F.col("seq").alias("at"), "seq"
    )
    # backwards: a frame that ends at the last row is computed anew for each row
    after = (
        Window.partitionBy("trace_id", "client_id")
        .orderBy(F.desc("at"), F.col("seq").isNull())
        .rowsBetween(Window.unboundedPreceding, 0)
    )
    marks = asked.withColumn("seq", F.lit(None).cast("bigint"))
    next_fetch = (
        fetches.unionByName(marks)
        .withColumn("fetch_seq", F.last("seq", ignorenulls=True).over(after))
        .where("seq IS NULL AND fetch_seq > at")
        .select("trace_id", "client_id", F.col("at").alias("since_seq"), "fetch_seq")
    )
    judged = since.join(next_fetch, ["trace_id", "client_id", "since_seq"], "left")
    unread = F.coalesce(  # of two clients of one name nobody can say whose the fetches are
        F.col("is_alone") & (F.col("fetch_seq") < F.coalesce("told_seq", "seq")),
        F.lit(False),  # noqa: FBT003 - a value
    )
    text = texts(
        "{name}{software} gave up its partitions with ",
        F.col("text"),
        ", and has committed nothing since it fetched at #",
        F.col("fetch_seq"),
    )
    status = F.when(unread, INCONCLUSIVE).when(F.col("commit_seq").isNotNull(), PASS)
    last = F.when(unread, F.col("seq")).otherwise(F.col("commit_seq"))
    return found(judged, status, "seq", last, text=text, member="member_id")


def _revokes(story: Story) -> DataFrame:
    """Where a member gives up all it has, what told it to (`told_seq`), and its last commit before (`commit_seq`)."""
    told = (F.col("api") == "Heartbeat") & (F.col("error") == "REBALANCE_IN_PROGRESS")
    well = F.col("api").isin("SyncGroup", "OffsetCommit") & (F.col("error") == OK)
    calls = story.call.where(
        F.col("member_id").isNotNull() & (F.col("api").isin("JoinGroup", "LeaveGroup") | told | well)
    )
    before = Window.partitionBy(*MEMBER).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    eager = F.when(F.col("formed").isNotNull(), ~F.coalesce("protocol", F.lit("")).like(COOPERATIVE))
    was_eager = F.coalesce(F.last(eager, ignorenulls=True).over(before), F.lit(False))  # noqa: FBT003 - a value
    gives_up = (F.col("api") == "LeaveGroup") | ((F.col("api") == "JoinGroup") & F.col("was_eager"))
    something = F.exists(F.map_values("assignment"), lambda partitions: F.size(partitions) > 0)
    owns = F.when(F.col("gives_up"), F.lit(False)).when(  # noqa: FBT003 - a value
        F.col("api") == "SyncGroup",
        F.coalesce(something, F.lit(False)),  # noqa: FBT003 - a value
    )
    commit = F.when(F.col("api") == "OffsetCommit", F.col("seq"))
    calls = (
        calls.withColumn("was_eager", was_eager)
        .withColumn("gives_up", gives_up)
        .withColumn("owned", F.last(owns, ignorenulls=True).over(before))
        .withColumn("commit_seq", F.max(commit).over(before))
        .withColumn("turn", F.coalesce(F.sum(F.col("gives_up").cast("int")).over(before), F.lit(0)))
    )
    in_turn = Window.partitionBy(*MEMBER, "turn").orderBy("seq")
    return (
        calls.withColumn("told_seq", F.min(F.when(F.col("api") == "Heartbeat", F.col("seq"))).over(in_turn))
        .where("gives_up AND owned")
        .select(*MEMBER, "seq", "told_seq", "commit_seq", said().alias("text"))
    )


def _alone(story: Story) -> DataFrame:
    """Every member that asked: whether no other of its client id was there at the same time, and whether it commits."""
    asked = story.asked.select(*MEMBER, F.coalesce("client_id", F.lit("")).alias("client_id"), "first_seq", "last_seq")
    namesakes = Window.partitionBy(*GROUP, "client_id").orderBy("first_seq")
    before = F.max("last_seq").over(namesakes.rowsBetween(Window.unboundedPreceding, -1))
    after = F.lead("first_seq").over(namesakes)
    none_before = F.coalesce(before < F.col("first_seq"), F.lit(True))  # noqa: FBT003 - a value
    none_after = F.coalesce(after > F.col("last_seq"), F.lit(True))  # noqa: FBT003 - a value
    commits = (
        story.answered_as(("OffsetCommit",))
        .where("member_id IS NOT NULL")
        .select(*MEMBER)
        .distinct()
        .withColumn("has_committed", F.lit(True))  # noqa: FBT003 - a value
    )
    return asked.withColumn("is_alone", none_before & none_after).join(commits, [*MEMBER], "left")
