"""The words of handles' arguments, as types: a type checker finds a misspelled one.

At run time the operation refuses an unknown word, and suggests one. Properties such as `Group.state` are `str`: after
`assert group.state == "Empty"` mypy would hold the next state for impossible.
"""

from __future__ import annotations

from typing import Literal

from koordinator.emulator.core.clock import ClockMode

__all__ = [
    "AclOperation",
    "Behaviour",
    "ClientLibrary",
    "ClientRole",
    "ClockMode",
    "ErrorCodes",
    "GroupProtocol",
    "GroupState",
    "Markers",
    "Mechanism",
    "Profile",
    "PuppetState",
    "RebalanceCause",
    "ResetScope",
    "Security",
    "TransactionState",
]

AclOperation = Literal[
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster_action",
    "describe_configs",
    "alter_configs",
    "idempotent_write",
    "create_tokens",
    "describe_tokens",
    "two_phase_commit",
]
"""An operation of ACLs."""

Behaviour = Literal[
    "healthy",
    "manual",
    "straggler",
    "flapping",
    "silent",
    "never_syncs",
    "omits_members",
    "eager_only",
    "duplicate_instance_id",
    "never_revokes",
]
"""A behaviour of puppets."""

ClientLibrary = Literal["kafka-python", "confluent-kafka", "aiokafka", "java"]
"""A client library that `client_config` knows."""

ClientRole = Literal["consumer", "producer", "admin"]
"""The kind of client that `client_config` returns settings for."""

ErrorCodes = Literal["kafka", "kip"]
"""The numbering of errors."""

GroupProtocol = Literal["classic", "consumer", "share", "streams"]
"""The protocol of a group."""

GroupState = Literal[
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Assigning",
    "Reconciling",
    "NotReady",
]
"""The state of a group of any protocol."""

Markers = Literal["written", "delayed", "lost"]
"""What happens to the transaction markers of a partition."""

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
"""A mechanism of SASL."""

Profile = Literal["fast", "kafka-defaults"]
"""A set of defaults of broker configs."""

PuppetState = Literal["out", "joining", "joined", "syncing", "reconciling", "stable", "leaving", "failed"]
"""The state of a puppet."""

RebalanceCause = Literal[
    "member_join",
    "member_rejoin",
    "metadata_change",
    "leader_rejoin",
    "member_leave",
    "session_expired",
    "join_timeout",
    "pending_expired",
    "topic_change",
    "revocation_timeout",
    "sync_timeout",
    "protocol_change",
    "over_capacity",
    "store_error",
    "group_downgrade",
    "forced",
]
"""The kind of the cause of a rebalance."""

ResetScope = Literal["rules", "holds", "puppets", "acls", "groups", "topics", "trace"]
"""What `Cluster.reset` can empty."""

Security = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
"""The security protocol of a listener."""

TransactionState = Literal[
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead"
]
"""The state of a transactional id."""
