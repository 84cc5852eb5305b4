"""S06 and S07: session expiry, and the size limit of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .check_input import MEMBER
from .findings import FAIL, GROUP, OK, PASS, findings, join_text, seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .check_input import CheckInput

SLACK_MS = 1000
"""Tolerated delay of a removal: brokers check deadlines periodically, and a busy machine delays them."""


def session_expiry_in_time(inputs: CheckInput) -> DataFrame:
    """S06: a silent member is removed soon after its session timeout, and not before.

    Each successful response restarts the session. A member with a parked request is not silent. A session also restarts
    when the coordinator moves, and a test may end it at any time.
    """
    expired = inputs.changes.where("change = 'removed' AND cause = 'session_expired'").select(
        *MEMBER, F.col("seq").alias("expired_seq"), F.col("group_us").alias("expired_us")
    )
    is_sign_of_life = F.col("api").isin("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit")
    renews = (is_sign_of_life & (F.col("error") == OK)).alias("renews")
    calls = inputs.call.where("member_id IS NOT NULL").select(
        *MEMBER, "seq", "group_us", "answered_seq", "answered_group_us", "session_timeout_ms", "rule_id", renews
    )
    # expired members are few, so the other calls are not shuffled
    requests = calls.join(F.broadcast(expired), [*MEMBER]).where("seq < expired_seq")
    sessions = requests.groupBy(*MEMBER, "expired_seq", "expired_us").agg(
        F.max(F.struct("seq", "group_us", "answered_seq", "answered_group_us")).alias("last"),
        F.max(F.when(F.col("renews"), F.col("group_us"))).alias("renewed_us"),
        F.max("answered_group_us").alias("heard_us"),
        F.min("session_timeout_ms").alias("least_ms"),
        F.max("session_timeout_ms").alias("most_ms"),
        F.max(F.col("rule_id").isNotNull()).alias("is_ruled"),
    )
    test_actions = inputs.event.where("kind IN ('verb', 'node', 'leader')").select(
        "trace_id", F.col("group_id").alias("of_group"), F.col("seq").alias("action_seq")
    )
    affected = (
        sessions.join(test_actions, "trace_id")
        .where("(of_group IS NULL OR of_group = group_id) AND action_seq > last.seq AND action_seq < expired_seq")
        .select(*MEMBER, "expired_seq")
        .distinct()
    )
    # a member without a response since its join may be new, and new members have a longer timeout
    judged = sessions.where("NOT is_ruled AND last.answered_seq < expired_seq AND most_ms IS NOT NULL").join(
        affected, [*MEMBER, "expired_seq"], "left_anti"
    )
    silent_ms = (F.col("expired_us") - F.col("renewed_us")) / 1000
    late_ms = (F.col("expired_us") - F.col("heard_us")) / 1000
    early = F.coalesce(silent_ms < F.col("least_ms"), F.lit(col=False))
    late = late_ms > F.col("most_ms") + SLACK_MS
    text = join_text(
        "{name} was removed ",
        seconds(F.when(early, silent_ms).otherwise(late_ms)),
        " s after its last request; its session timeout is ",
        seconds(F.when(early, F.col("least_ms")).otherwise(F.col("most_ms"))),
        " s",
    )
    status = F.when(early | late, FAIL).otherwise(PASS)
    return findings(judged, status, "last.seq", "expired_seq", text=text, member="member_id")


def group_max_size_kept(inputs: CheckInput) -> DataFrame:
    """S07: after a member was refused because the group is full, no generation has more members than then (KAFKA-9885).

    The trace does not contain group.max.size, so a group that never refused a member is not judged. Members that have
    an id but have not joined yet count, too, when a member is refused.
    """
    changes = inputs.changes.select(*GROUP, "member_id", "seq", "change")
    expired = inputs.event.where("kind = 'timer' AND timer = 'PendingMemberExpiry' AND group_id IS NOT NULL").select(
        *GROUP, "member_id", "seq", F.lit("expired").alias("change")
    )
    refused = inputs.call.where("error = 'GROUP_MAX_SIZE_REACHED' AND rule_id IS NULL").select(
        *GROUP, "member_id", "seq", F.lit("refused").alias("change")
    )
    formed = inputs.states.where("state_to = 'CompletingRebalance'").select(
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
    text = join_text("a generation of ", F.col("size"), " members, and with ", F.col("most"), " somebody was refused")
    return findings(counted, F.when(F.col("size") > F.col("most"), FAIL).otherwise(PASS), "seq", text=text)
