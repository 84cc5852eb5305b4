"""The causes of changes of groups and members."""

from enum import Enum

from koordinator.wire.values import value


class Cause(Enum):
    """Why a group changes its state or its membership; the value is the `cause` of the trace."""

    MEMBER_JOIN = "member_join"
    MEMBER_REJOIN = "member_rejoin"
    LEADER_REJOIN = "leader_rejoin"
    METADATA_CHANGE = "metadata_change"
    PROTOCOL_CHANGE = "protocol_change"
    MEMBER_LEAVE = "member_leave"
    SESSION_EXPIRED = "session_expired"
    JOIN_TIMEOUT = "join_timeout"
    SYNC_TIMEOUT = "sync_timeout"
    OVER_CAPACITY = "over_capacity"
    FENCED = "fenced"
    FORCED = "forced"
    STORE_ERROR = "store_error"
    JOINED = "joined"
    EMPTIED = "emptied"
    ASSIGNED = "assigned"
    LOADED = "loaded"
    UNLOADED = "unloaded"
    REMOVED = "removed"
    # consumer groups (KIP-848)
    TOPIC_CHANGE = "topic_change"
    REVOCATION_TIMEOUT = "revocation_timeout"
    RECONCILED = "reconciled"
    GROUP_UPGRADE = "group_upgrade"
    GROUP_DOWNGRADE = "group_downgrade"


@value
class Reason:
    """Why a group rebalances or a member leaves: the kind, Kafka's wording, and the client's own reason (KIP-800)."""

    cause: Cause
    text: str
    member_id: str | None = None
    client_reason: str | None = None
