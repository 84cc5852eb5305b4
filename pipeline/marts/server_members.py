"""S06 and S07: whom the coordinator removes, and whom it lets in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .judging import FAIL, GROUP, OK, PASS, found, seconds, texts
from .story import MEMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .story import Story

SLACK_MS = 1000
"""So late a member may be removed: brokers look for what is overdue in turns, and a busy machine is late for them."""


def removed_in_time(story: Story) -> DataFrame:
    """S06. A member that is silent is removed when its session has passed, not before, and soon after.

    The session begins anew with whatever of a member is answered. A member that waits for an answer is not silent; one
    whose coordinator has moved begins anew, too; and a test's hand may end a session when it likes.
    """
    gone = story.changes.where("change = 'removed' AND cause = 'session_expired'").select(
        *MEMBER, F.col("seq").alias("gone_seq"), F.col("group_us").alias("gone_us")
    )
    signs = F.col("api").isin("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit")
    renews = (signs & (F.col("error") == OK)).alias("renews")
    calls = story.call.where("member_id IS NOT NULL").select(
        *MEMBER, "seq", "group_us", "answered_seq", "answered_group_us", "session_timeout_ms", "rule_id", renews
    )
    # who is removed so are few: all other calls stay where they are
    asked = calls.join(F.broadcast(gone), [*MEMBER]).where("seq < gone_seq")
    sessions = asked.groupBy(*MEMBER, "gone_seq", "gone_us").agg(
        F.max(F.struct("seq", "group_us", "answered_seq", "answered_group_us")).alias("last"),
        F.max(F.when(F.col("renews"), F.col("group_us"))).alias("renewed_us"),
        F.max("answered_group_us").alias("heard_us"),
        F.min("session_timeout_ms").alias("least_ms"),
        F.max("session_timeout_ms").alias("most_ms"),
        F.max(F.col("rule_id").isNotNull()).alias("is_ruled"),
    )
    hands = story.event.where("kind IN ('verb', 'node', 'leader')").select(
        "trace_id", F.col("group_id").alias("of_group"), F.col("seq").alias("hand_seq")
    )
    reached_in = (
        sessions.join(hands, "trace_id")
        .where("(of_group IS NULL OR of_group = group_id) AND hand_seq > last.seq AND hand_seq < gone_seq")
        .select(*MEMBER, "gone_seq")
        .distinct()
    )
    # who has not been answered since may be new in the group, and a new member is waited for longer
    judged = sessions.where("NOT is_ruled AND last.answered_seq < gone_seq AND most_ms IS NOT NULL").join(
        reached_in, [*MEMBER, "gone_seq"], "left_anti"
    )
    silent_ms = (F.col("gone_us") - F.col("renewed_us")) / 1000
    late_ms = (F.col("gone_us") - F.col("heard_us")) / 1000
    early = F.coalesce(silent_ms < F.col("least_ms"), F.lit(col=False))
    late = late_ms > F.col("most_ms") + SLACK_MS
    text = texts(
        "{name} was removed ",
        seconds(F.when(early, silent_ms).otherwise(late_ms)),
        " s after its last request; its session timeout is ",
        seconds(F.when(early, F.col("least_ms")).otherwise(F.col("most_ms"))),
        " s",
    )
    status = F.when(early | late, FAIL).otherwise(PASS)
    return found(judged, status, "last.seq", "gone_seq", text=text, member="member_id")


def never_too_many(story: Story) -> DataFrame:
    """S07. KAFKA-9885: once a member was refused because the group is full, no generation has more members than then.

    What group.max.size is, is not in the trace; so a group that never refused anybody is not judged. Members that were
    given an id and have not joined yet count as well when somebody is refused.
    """
    changes = story.changes.select(*GROUP, "member_id", "seq", "change")
    expired = story.event.where("kind = 'timer' AND timer = 'PendingMemberExpiry' AND group_id IS NOT NULL").select(
        *GROUP, "member_id", "seq", F.lit("expired").alias("change")
    )
    refused = story.call.where("error = 'GROUP_MAX_SIZE_REACHED' AND rule_id IS NULL").select(
        *GROUP, "member_id", "seq", F.lit("refused").alias("change")
    )
    formed = story.states.where("state_to = 'CompletingRebalance'").select(
        *GROUP, F.lit(None).cast("string").alias("member_id"), "seq", F.lit("formed").alias("change")
    )
    full = refused.select(*GROUP).distinct()
    lines = changes.unionByName(expired).unionByName(refused).unionByName(formed).join(full, [*GROUP], "left_semi")
    of_member = Window.partitionBy(*MEMBER).orderBy("seq")
    was_pending = F.coalesce(F.lag("change").over(of_member) == "pending", F.lit(col=False))
    joined = F.when(F.col("change") == "added", 1).when(F.col("change") == "removed", -1).otherwise(0)
    pending = F.when(F.col("change") == "pending", 1).when(F.col("was_pending"), -1).otherwise(0)
    until = Window.partitionBy(*GROUP).orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    counted = (
        lines.withColumn("was_pending", was_pending)
        .withColumn("joined", joined)
        .withColumn("pending", pending)
        .withColumn("size", F.sum("joined").over(until))
        .withColumn("all", F.sum(F.col("joined") + F.col("pending")).over(until))
        .withColumn("most", F.min(F.when(F.col("change") == "refused", F.col("all"))).over(until))
        .where("change = 'formed' AND most IS NOT NULL")
    )
    text = texts("a generation of ", F.col("size"), " members, and with ", F.col("most"), " somebody was refused")
    return found(counted, F.when(F.col("size") > F.col("most"), FAIL).otherwise(PASS), "seq", text=text)
