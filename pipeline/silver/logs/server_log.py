"""server.log of a Kafka broker, 2.4 to 4.x: the messages of both group coordinators.

The old coordinator is kafka.coordinator.group.GroupCoordinator (Scala), the new one
org.apache.kafka.coordinator.group.GroupMetadataManager. Both log PreparingRebalance after the change and name the new
state, so the previous state is unknown. Messages about KIP-848 groups are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .patterns import LinePattern

if TYPE_CHECKING:
    from pyspark.sql import Column

MARK = r"\[Group(?:Coordinator|MetadataManager) [^\]]*\]"
"""The prefix of every coordinator message: [GroupCoordinator 1], or [GroupCoordinator id=1 …] of the new one."""

RELEVANT = MARK

NODE = r"\[Group(?:Coordinator|MetadataManager) (?:id=|brokerId=)?(\d+)"

_MESSAGE = rf"(?s){MARK}:? (.*?)(?: \([\w.$]+\)(?: \[[^\]]*\])?)?\s*\z"
"""The message; a logger may follow, and in Strimzi's layout the thread."""

_PARTITION = r"(?: \(__consumer_offsets-\d+\))?"
_GROUP = "(?P<group_id>.+)"
_MEMBER = "(?P<member_id>.+)"
_INSTANCE = r"(?:None|null|Some\((?P<instance_id>.+)\))"

PREPARING = LinePattern(
    rf"^Preparing to rebalance group {_GROUP} in state \w+ with old generation (?P<generation>\d+){_PARTITION}"
    r" \(reason: (?P<reason>.*)\)\.?\Z",
    {"kind": "state", "state_to": "PreparingRebalance"},
)

STATES = (
    PREPARING,
    LinePattern(
        rf"^Stabilized group {_GROUP} generation (?P<generation>\d+){_PARTITION}"
        r"(?: with (?P<n_members>\d+) members)?\.?\Z",
        {
            "kind": "state",
            "state_from": "PreparingRebalance",
            "state_to": "CompletingRebalance",
            "cause": "joined",
        },
    ),
    LinePattern(
        rf"^Assignment received from leader(?: {_MEMBER})? for group {_GROUP} for generation (?P<generation>\d+)\.?"
        r"(?: The group has (?P<n_members>\d+) members, (?P<n_static>\d+) of which are static\.)?\Z",
        {"kind": "state", "state_from": "CompletingRebalance", "state_to": "Stable", "cause": "assigned"},
    ),
    LinePattern(
        rf"^Group {_GROUP} with generation (?P<generation>\d+) is now empty{_PARTITION}\.?\Z",
        {"kind": "state", "state_from": "PreparingRebalance", "state_to": "Empty", "cause": "emptied"},
    ),
    LinePattern(
        rf"^Group {_GROUP} transitioned to Dead in generation (?P<generation>\d+)\.?\Z",
        {"kind": "state", "state_to": "Dead", "cause": "removed"},
    ),
    LinePattern(
        rf"^Unloading group metadata for {_GROUP} with generation (?P<generation>\d+)\.?\Z",
        {"kind": "state", "state_to": "Dead", "cause": "unloaded"},
    ),
    LinePattern(
        rf"^\[GroupId={_GROUP}\] Unloading group metadata for generation (?P<generation>\d+)\.?\Z",
        {"kind": "state", "state_to": "Dead", "cause": "unloaded"},
    ),
    LinePattern(
        rf"^\[GroupId {_GROUP}\] Converted the classic group to a consumer group\.?\Z",
        {"kind": "state", "state_to": "Dead", "cause": "group_upgrade"},
    ),
    LinePattern(
        rf"^Loaded classic group {_GROUP} with (?P<n_members>[1-9]\d*) members\.?\Z",
        {"kind": "state", "state_to": "Stable", "cause": "loaded"},
    ),
)

_ADDED = {"kind": "member", "change": "added", "cause": "member_join"}
_LEFT = {"kind": "member", "change": "removed", "cause": "member_leave"}
_REPLACED = {"kind": "member", "change": "replaced", "cause": "fenced"}
_AVOIDED = {"kind": "avoided_static", "cause": "avoided_static"}

MEMBERS = (
    LinePattern(
        rf"^Dynamic [Mm]ember with unknown member id joins group {_GROUP} in \w+ state\."
        rf" Created a new member id {_MEMBER} and request(?:ing)? the member to rejoin with this id\.\Z",
        {"kind": "member", "change": "pending", "cause": "member_id_required"},
    ),
    LinePattern(
        r"^(?:Dynamic|Static) [Mm]ember with (?:groupInstanceId=(?P<instance_id>.+) and )?unknown member id"
        rf" joins group {_GROUP} in (?:state \w+|\w+ state)\. Created a new member id {_MEMBER}"
        r" (?:for this member and add(?:ed)? to the group|and added the member to the group)\.\Z",
        _ADDED,
    ),
    LinePattern(rf"^Adding new static member {_INSTANCE} to group {_GROUP} with member id {_MEMBER}\.\Z", _ADDED),
    LinePattern(
        rf"^Pending dynamic member with id {_MEMBER} joins group {_GROUP} in \w+ state\. Adding to the group now\.\Z",
        _ADDED,
    ),
    LinePattern(
        r"^Static member with groupInstanceId=(?P<instance_id>.+) and unknown member id"
        rf" joins group {_GROUP} in \w+ state\. Replacing previously mapped member {_MEMBER}"
        r" with this groupInstanceId\.\Z",
        _REPLACED,
    ),
    LinePattern(
        # before 2.5 without the group
        rf"^Static member {_INSTANCE} (?:of group {_GROUP} )?with unknown member id rejoins, assigning new member id"
        rf" (?P<new_member_id>.+), while old member (?:id )?{_MEMBER} will be removed\.\Z",
        _REPLACED,
    ),
    LinePattern(
        rf"^Member {_MEMBER} in group {_GROUP} has failed, removing it from the group\.?\Z",
        {"kind": "member", "change": "removed", "cause": "session_expired"},
    ),
    LinePattern(
        rf"^Group {_GROUP} removed dynamic members who haven't joined: (?:\w+\(|\[)(?P<members>.+)[)\]]\Z",
        {"kind": "member", "change": "removed", "cause": "join_timeout"},
    ),
    LinePattern(
        rf"^Member MemberMetadata\(memberId={_MEMBER}, groupInstanceId={_INSTANCE}, clientId=(?P<client_id>.*),"
        r" clientHost=.*\)"
        rf" has left group {_GROUP} through explicit `LeaveGroup`; client reason: (?P<client_reason>.*)\Z",
        _LEFT,
    ),
    LinePattern(
        rf"^\[Group {_GROUP}\] Member {_MEMBER} has left group through explicit `LeaveGroup` request;"
        r" client reason: (?P<client_reason>.*)\Z",
        _LEFT,
    ),
    LinePattern(
        rf"^Member\[group\.instance\.id {_INSTANCE}, member\.id {_MEMBER}\] in group {_GROUP} has left,"
        r" removing it from the group\Z",
        _LEFT,
    ),
    LinePattern(
        rf"^Pending member {_MEMBER} in group {_GROUP} has been removed after session timeout expiration\.\Z",
        {"kind": "timer", "timer": "PendingMemberExpiry"},
    ),
    LinePattern(
        r"^Static member which joins during Stable stage and doesn't affect (?:selectProtocol|the selected protocol)"
        r" will not trigger (?:a )?rebalance\.\Z",
        _AVOIDED,
    ),
    LinePattern(r"^Static member joins during \w+ stage will not trigger rebalance\.\Z", _AVOIDED),
)

KNOWN = STATES + MEMBERS

BEGINS = (
    r"^(?:Preparing to rebalance group|Stabilized group|Assignment received from leader|Group .* with generation)\b"
)
"""A line with this start and no known pattern is cut off, or from an unknown Kafka version."""

CAUSES = (
    ("member_join", r"^Adding new member "),
    ("member_rejoin", r"^Member .+ (?:is )?joining group during "),
    ("leader_rejoin", r"^[Ll]eader .+ re-joining group during "),
    ("metadata_change", r"^Updating metadata for (?:static )?member "),
    ("member_leave", r"^[Rr]emoving member .+ on LeaveGroup|^explicit `LeaveGroup` request "),
    ("session_expired", r"^removing member .+ on heartbeat expiration"),
    ("pending_expired", r"^Pending member .+ has been removed after session timeout"),
    ("sync_timeout", r"^Removing .+ on pending sync request expiration"),
    ("join_timeout", r"^Group .+ removed dynamic members who haven't joined"),
    ("protocol_change", r"^Group's selectedProtocol will change because static member "),
    ("over_capacity", r"^Freshly-loaded group .* over capacity"),
    ("store_error", r"^[Ee]rror .*when storing group assignment during SyncGroup"),
    ("group_downgrade", r"^Downgrade group "),
)
"""The causes of rebalances, by the reason that Kafka logs."""

_MEMBER_PATTERN = (
    r"(?s)^(?:Adding new member|Member|[Ll]eader|[Rr]emoving member|Updating metadata for(?: static)? member"
    r"|Group's selectedProtocol will change because static member|explicit `LeaveGroup` request for \(|.*\(member:)"
    r" ?(.+?)(?: with group | with instance | (?:is )?joining | re-joining | on | during |, |\)(?: members)?\.?\z"
    r"|; client reason: |\z)"
)
_INSTANCE_PATTERNS = tuple(
    rf"(?s) with (?:group )?instance ?id {name}(?:; client reason: | joined with |\z)"
    for name in (r"Some\((.+?)\)", "(.+?)")
)
_CLIENT_REASON_PATTERN = r"(?s); client reason: (.*)\Z"
_REMOVED_PATTERN = r"(?s)^Removing (?:\w+\(|\[)(.+)[)\]] on pending sync request expiration"


def message(text: Column) -> Column:
    """Return the coordinator's message without time, level and logger."""
    return F.regexp_extract(text, _MESSAGE, 1)


def node(text: Column) -> Column:
    """Return the broker."""
    return F.nullif(F.regexp_extract(text, NODE, 1), F.lit("")).cast("int")


def cause(reason: Column) -> Column:
    """Return the cause of a rebalance from its reason."""
    cause_ = F.lit("other")
    for name, pattern in reversed(CAUSES):
        cause_ = F.when(reason.rlike(f"(?s){pattern}"), F.lit(name)).otherwise(cause_)
    return cause_


def trigger(reason: Column) -> Column:
    """Return the member that triggered a rebalance, from its reason; null if it names none."""
    return _part(reason, _MEMBER_PATTERN)


def instance(reason: Column) -> Column:
    """Return that member's group.instance.id."""
    instance_id = F.coalesce(*(_part(reason, pattern) for pattern in _INSTANCE_PATTERNS))
    return F.when(~instance_id.isin("None", "null"), instance_id)


def client_reason(reason: Column) -> Column:
    """Return the client's own reason inside Kafka's reason (KIP-800)."""
    return null_if_missing(_part(reason, _CLIENT_REASON_PATTERN))


def null_if_missing(client_reason: Column) -> Column:
    """Return null if Kafka logged that the client gave no reason."""
    return F.when(client_reason != "not provided", client_reason)


def removed(reason: Column) -> Column:
    """Return the members removed because they did not sync, as text; null for any other reason."""
    return _part(reason, _REMOVED_PATTERN)


def _part(text: Column, pattern: str) -> Column:
    return F.nullif(F.regexp_extract(text, pattern, 1), F.lit(""))
