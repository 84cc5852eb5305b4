"""C03 and C10: stale commits, and missing commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import MEMBER
from .findings import FAIL, GROUP, INCONCLUSIVE, OK, PASS, call_text, findings, join_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .check_input import CheckInput

COOPERATIVE = "%cooperative%"
"""Pattern of the names of incremental assignors."""


def no_stale_commit(inputs: CheckInput) -> DataFrame:
    """C03: a commit in a generation older than the one in an earlier JoinGroup response of the same member."""
    commits = inputs.call.where("api = 'OffsetCommit' AND generation >= 0")
    calls = commits.unionByName(inputs.call.where("formed IS NOT NULL")).withColumn(
        # a JoinGroup takes effect with its response
        "at",
        F.when(F.col("formed").isNotNull(), F.col("answered_seq")).otherwise(F.col("seq")),
    )
    before = Window.partitionBy(*MEMBER).orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    join = F.when(F.col("formed").isNotNull(), F.struct("formed", "seq", call_text().alias("text")))
    judged = calls.withColumn("newest", F.max(join).over(before)).where("api = 'OffsetCommit'")
    newer = F.coalesce(F.col("newest.formed") > F.col("generation"), F.lit(False))  # noqa: FBT003 - a value
    return findings(
        judged,
        F.when(newer, FAIL).otherwise(PASS),
        "seq",
        F.when(newer, F.col("newest.seq")).otherwise(F.col("seq")),
        text=join_text(call_text(), "{software}, after ", F.col("newest.text")),
        member="member_id",
    )


def commit_before_revoke(inputs: CheckInput) -> DataFrame:
    """C10: a member that received records commits before it gives up its partitions by rejoining or leaving.

    Only an eager member gives up everything to rejoin. The trace does not show whether the member commits
    automatically, or whether the application received the fetched records; so a missing commit is inconclusive. Members
    that never commit are not judged. Records fetched after the member learned of the rebalance do not count.
    """
    revokes = _revokes(inputs).join(_members_by_client_id(inputs), [*MEMBER]).where("has_committed")
    since = revokes.withColumn("since_seq", F.coalesce("commit_seq", "first_seq"))
    positions = since.where("is_alone").select("trace_id", "client_id", F.col("since_seq").alias("at")).distinct()
    fetches = inputs.event.where("kind = 'response' AND api = 'Fetch' AND error IS NULL").select(
        "trace_id", F.coalesce("client_id", F.lit("")).alias("client_id"), F.col("seq").alias("at"), "seq"
    )
    # descending: Spark evaluates a frame that ends at the last row once for every row
    after = (
        Window.partitionBy("trace_id", "client_id")
        .orderBy(F.desc("at"), F.col("seq").isNull())
        .rowsBetween(Window.unboundedPreceding, 0)
    )
    marks = positions.withColumn("seq", F.lit(None).cast("bigint"))
    next_fetch = (
        fetches.unionByName(marks)
        .withColumn("fetch_seq", F.last("seq", ignorenulls=True).over(after))
        .where("seq IS NULL AND fetch_seq > at")
        .select("trace_id", "client_id", F.col("at").alias("since_seq"), "fetch_seq")
    )
    judged = since.join(next_fetch, ["trace_id", "client_id", "since_seq"], "left")
    unread = F.coalesce(  # fetches of two clients with the same client id cannot be told apart
        F.col("is_alone") & (F.col("fetch_seq") < F.coalesce("told_seq", "seq")),
        F.lit(False),  # noqa: FBT003 - a value
    )
    text = join_text(
        "{name}{software} gave up its partitions with ",
        F.col("text"),
        ", and has committed nothing since it fetched at #",
        F.col("fetch_seq"),
    )
    status = F.when(unread, INCONCLUSIVE).when(F.col("commit_seq").isNotNull(), PASS)
    last = F.when(unread, F.col("seq")).otherwise(F.col("commit_seq"))
    return findings(judged, status, "seq", last, text=text, member="member_id")


def _revokes(inputs: CheckInput) -> DataFrame:
    """Return the calls that give up all partitions, with the seqs of the notification and of the last commit."""
    is_notification = (F.col("api") == "Heartbeat") & (F.col("error") == "REBALANCE_IN_PROGRESS")
    is_accepted = F.col("api").isin("SyncGroup", "OffsetCommit") & (F.col("error") == OK)
    calls = inputs.call.where(
        F.col("member_id").isNotNull() & (F.col("api").isin("JoinGroup", "LeaveGroup") | is_notification | is_accepted)
    )
    before = Window.partitionBy(*MEMBER).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    eager = F.when(F.col("formed").isNotNull(), ~F.coalesce("protocol", F.lit("")).like(COOPERATIVE))
    was_eager = F.coalesce(F.last(eager, ignorenulls=True).over(before), F.lit(False))  # noqa: FBT003 - a value
    gives_up = (F.col("api") == "LeaveGroup") | ((F.col("api") == "JoinGroup") & F.col("was_eager"))
    has_partitions = F.exists(F.map_values("assignment"), lambda partitions: F.size(partitions) > 0)
    owns = F.when(F.col("gives_up"), F.lit(False)).when(  # noqa: FBT003 - a value
        F.col("api") == "SyncGroup",
        F.coalesce(has_partitions, F.lit(False)),  # noqa: FBT003 - a value
    )
    commit = F.when(F.col("api") == "OffsetCommit", F.col("seq"))
    calls = (
        calls.withColumn("was_eager", was_eager)
        .withColumn("gives_up", gives_up)
        .withColumn("owned", F.last(owns, ignorenulls=True).over(before))
        .withColumn("commit_seq", F.max(commit).over(before))
        .withColumn("ownership", F.coalesce(F.sum(F.col("gives_up").cast("int")).over(before), F.lit(0)))
    )
    in_ownership = Window.partitionBy(*MEMBER, "ownership").orderBy("seq")
    return (
        calls.withColumn("told_seq", F.min(F.when(F.col("api") == "Heartbeat", F.col("seq"))).over(in_ownership))
        .where("gives_up AND owned")
        .select(*MEMBER, "seq", "told_seq", "commit_seq", call_text().alias("text"))
    )


def _members_by_client_id(inputs: CheckInput) -> DataFrame:
    """Return the members with requests: whether their client id is unique at that time, and whether they commit."""
    requesting = inputs.requesting.select(
        *MEMBER, F.coalesce("client_id", F.lit("")).alias("client_id"), "first_seq", "last_seq"
    )
    same_client_id = Window.partitionBy(*GROUP, "client_id").orderBy("first_seq")
    before = F.max("last_seq").over(same_client_id.rowsBetween(Window.unboundedPreceding, -1))
    after = F.lead("first_seq").over(same_client_id)
    none_before = F.coalesce(before < F.col("first_seq"), F.lit(True))  # noqa: FBT003 - a value
    none_after = F.coalesce(after > F.col("last_seq"), F.lit(True))  # noqa: FBT003 - a value
    commits = (
        inputs.answered_as(("OffsetCommit",))
        .where("member_id IS NOT NULL")
        .select(*MEMBER)
        .distinct()
        .withColumn("has_committed", F.lit(True))  # noqa: FBT003 - a value
    )
    return requesting.withColumn("is_alone", none_before & none_after).join(commits, [*MEMBER], "left")
