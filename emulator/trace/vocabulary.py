"""The words of the trace: kinds of events, causes, group states, and the errors that belong to the protocol.

The one place that declares them. The pages and the data pipeline read the same words from `vocabulary.json`, which
`make docs` writes. This module imports nothing, so that readers of traces need no emulator.
"""

from __future__ import annotations

import json
import re

KINDS = {
    "header": "the first line of a file: schema version, seed, versions, and the run",
    "request": "a request was received",
    "response": "a response was sent",
    "state": "a group changed its state",
    "member": "a member was added, loaded, removed or replaced, or was given an id to rejoin with",
    "target": "a consumer or streams group computed the target assignment of an epoch (KIP-848)",
    "reconciliation": "a member of a consumer or streams group took a step towards its target (KIP-848)",
    "avoided_static": "a static member rejoined without a rebalance (KIP-345)",
    "timer": "a deadline passed",
    "offsets": "committed offsets were deleted, or a marker decided those of a transaction",
    "locks": "locks of records ended without an acknowledgement (KIP-932)",
    "archived": "a member of a share group released records after their last delivery: they are given up (KIP-932)",
    "dead_letters": "records of a share group were given up, and written to a topic of dead letters (KIP-1191)",
    "transaction": "a transactional id changed its state",
    "superseded": "a parked request will never get a response: the member sent another, or left",
    "conn": "a connection was opened or closed",
    "dropped": "the ring was full and discarded its oldest events",
    "lag": "the machine was too busy to run the emulator in time; body.lag_ms is the delay",
    "node": "a broker was started, stopped, killed, paused, resumed, added or removed",
    "leader": "a test moved the leadership of a partition",
    "clock": "a test advanced a group's clock, or changed its mode",
    "puppet": "the state of a puppet changed",
    "rule": "a fault rule was added, removed or applied",
    "hold": "a hold was added or removed, or kept or released a request",
    "verb": "a test changed a group, a topic or a setting",
    "test": "the outcome of the test; the last line of a file of the pytest plugin",
}
"""Every kind of line, with its meaning."""

METADATA_KINDS = ("header", "test")
"""Kinds that describe the run; the others are events."""

TEST_ACTION_KINDS = ("rule", "hold", "clock", "puppet", "node", "leader", "verb")
"""Kinds of events that a test causes outside Kafka's protocol."""

GROUP_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
"""The states of a classic group, as DescribeGroups spells them."""

CONSUMER_GROUP_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
"""The states of a consumer group, as ConsumerGroupDescribe spells them (KIP-848)."""

STREAMS_GROUP_STATES = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead")
"""The states of a streams group, as StreamsGroupDescribe spells them (KIP-1071)."""

ALL_GROUP_STATES = tuple(dict.fromkeys((*GROUP_STATES, *CONSUMER_GROUP_STATES, *STREAMS_GROUP_STATES)))
"""The states of groups of every kind."""

REBALANCE_CAUSES = {
    "member_join": "a new member joins",
    "member_rejoin": "a member joins again during a rebalance",
    "metadata_change": "a member joins with a changed subscription",
    "leader_rejoin": "the leader joins again",
    "member_leave": "a member left by LeaveGroup",
    "session_expired": "a member sent no heartbeat within its session timeout",
    "join_timeout": "a member did not rejoin within the rebalance timeout",
    "pending_expired": "a new member did not return with its id within its session timeout",
    "topic_change": "a subscribed topic was created, deleted or extended (KIP-848)",
    "revocation_timeout": "a member did not give partitions up within its rebalance timeout (KIP-848)",
    "sync_timeout": "a member did not send SyncGroup within the rebalance timeout",
    "protocol_change": "a static member's return changes the selected protocol",
    "over_capacity": "a loaded group has more members than group.max.size",
    "store_error": "the assignment could not be written",
    "group_downgrade": "a consumer group became a classic group (KIP-848)",
    "forced": "a test started the rebalance",
}
"""The causes of rebalances: the kinds of the reasons that Kafka logs."""

OTHER_CAUSES = {
    "joined": "the join barrier completed",
    "assigned": "the leader's assignment was written",
    "reconciled": "every member of the group has its target (KIP-848)",
    "emptied": "the last member left",
    "loaded": "the coordinator loaded the group",
    "unloaded": "the coordinator moved to another broker",
    "removed": "the group was deleted",
    "group_upgrade": "a classic group became a consumer group (KIP-848)",
    "fenced": "a new member took over the group.instance.id",
    "member_id_required": "a new member was given an id to rejoin with (KIP-394)",
    "avoided_static": "a static member rejoined and the group stayed Stable",
    "retention": "offsets outlived offsets.retention.minutes",
    "offset_delete": "a client deleted offsets",
    "transaction_committed": "a marker committed the offsets of a transaction",
    "transaction_aborted": "a marker dropped the offsets of a transaction",
    "topic_deleted": "the topic of the offsets was deleted",
}
"""The causes of other events of a group."""

TRANSACTION_CAUSES = {
    "initialized": "a producer got a new epoch from InitProducerId",
    "partitions_added": "partitions or the offsets of a group joined the transaction, or began it",
    "committed": "the producer commits",
    "aborted": "the producer aborts",
    "aborted_empty": "the producer aborts a transaction that the coordinator does not know (KIP-890)",
    "timed_out": "the transaction was open for longer than its timeout",
    "fenced": "another producer initialized with the same transactional id",
    "operator": "a test aborts the transaction",
    "markers_written": "every partition has its marker",
    "expired": "the transactional id was idle for longer than transactional.id.expiration.ms",
}
"""The causes of events of a transactional id."""

CAUSES = {**OTHER_CAUSES, **REBALANCE_CAUSES}
"""Every cause, with its meaning."""

REMOVAL_CAUSES = ("session_expired", "join_timeout", "sync_timeout", "revocation_timeout", "fenced", "over_capacity")
"""The causes for which the coordinator removes a member that did not leave."""

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
"""The kinds of client reasons (KIP-800), in order of precedence, with the case-insensitive pattern of their texts."""

OUTCOMES = {"Stable": "completed", "Empty": "emptied", "Dead": "gone"}
"""The outcome of a rebalance, by the state that ends it."""

EXPECTED_ERRORS = {
    "UNSUPPORTED_VERSION": ("ApiVersions",),
    "MEMBER_ID_REQUIRED": ("JoinGroup",),
    "REBALANCE_IN_PROGRESS": ("Heartbeat", "SyncGroup"),
    "UNKNOWN_TOPIC_OR_PARTITION": ("Metadata",),
    "LEADER_NOT_AVAILABLE": ("Metadata",),
}
"""Errors that tell a client the next step of the protocol, with the APIs whose responses carry them."""

CHECKS = {
    "C01": "the id given with MEMBER_ID_REQUIRED is used within the session timeout",
    "C02": "after NOT_COORDINATOR the coordinator is looked for before it is asked again, and not without end",
    "C03": "no commit in an old generation after a newer JoinGroup of the same member",
    "C04": "heartbeats come in time and not in a storm, and nothing is sent with generation -1 after a sync",
    "C05": "a dynamic member leaves when it is closed, a static member does not",
    "C06": "cooperative: a partition is revoked before another gets it, and never used by two",
    "C07": "in a stable generation every partition is owned exactly once",
    "C08": "REBALANCE_IN_PROGRESS is answered by a JoinGroup within the rebalance timeout",
    "C09": "fatal errors are not asked for again and again without a pause",
    "C10": "what was consumed is committed before it is revoked, if the member commits automatically",
    "C11": "consumer group: an error is followed by everything again, a lost membership by a join",
    "C12": "consumer group: a heartbeat has the epoch of the latest response",
    "C13": "a refused commit is followed by a join",
    "C14": "a leader that got the member list sends its SyncGroup",
}
"""The client checks, with their titles."""


REASON_MAX = 255
"""The length to which clients cut a reason (`JoinGroupRequest.maybeTruncateReason`)."""


def sub_cause(client_reason: str | None) -> str | None:
    """Return the kind of a client reason (KIP-800): None without a reason, "other" if no pattern matches."""
    if not client_reason:
        return None
    # clients cut their reasons; the search in a longer one would take more than linear time
    reason = client_reason[:REASON_MAX]
    return next((name for name, text in SUB_CAUSES if re.search(text, reason, re.IGNORECASE)), "other")


def is_expected_error(api: str, error: str) -> bool:
    """Return whether an error belongs to the protocol, such as MEMBER_ID_REQUIRED in a JoinGroup response."""
    return api in EXPECTED_ERRORS.get(error, ())


def vocabulary_json() -> str:
    """Return the content of `vocabulary.json`."""
    words = {
        "kinds": KINDS,
        "metadata_kinds": METADATA_KINDS,
        "test_action_kinds": TEST_ACTION_KINDS,
        "group_states": GROUP_STATES,
        "consumer_group_states": CONSUMER_GROUP_STATES,
        "rebalance_causes": REBALANCE_CAUSES,
        "other_causes": OTHER_CAUSES,
        "transaction_causes": TRANSACTION_CAUSES,
        "removal_causes": REMOVAL_CAUSES,
        "sub_causes": SUB_CAUSES,
        "outcomes": OUTCOMES,
        "expected_errors": EXPECTED_ERRORS,
        "checks": CHECKS,
    }
    return json.dumps(words, indent=1) + "\n"
