"""server.log of a Kafka broker, 2.4 to 4.x: the messages of both group coordinators.

The old coordinator is kafka.coordinator.group.GroupCoordinator (Scala), the new one
org.apache.kafka.coordinator.group.GroupMetadataManager. Both log PreparingRebalance after the change and name the new
state, so the previous state is unknown. Of a consumer group (KIP-848) the log has members, epochs and targets, but not
when the members reach a target. Share groups and streams groups are ignored.
"""

from __future__ import annotations

import re

from .patterns import LinePattern

MARK = r"\[Group(?:Coordinator|MetadataManager) [^\]]*\]"
"""The prefix of every coordinator message: [GroupCoordinator 1], or [GroupCoordinator id=1 …] of the new one."""

NODE = re.compile(r"\[Group(?:Coordinator|MetadataManager) (?:id=|brokerId=)?(\d{1,9})\b", re.ASCII)

_END = re.compile(r" \([\w.$]+(?::\d+)?\)(?: \[[^\]]*\])?\s*\Z")
"""The logger after a message, and the thread in Strimzi's layout."""

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
        # the reason of a client continues in the next line
        rf"^Preparing to rebalance group {_GROUP} in state \w+ with old generation (?P<generation>\d+){_PARTITION}"
        r" \(reason: (?P<reason>.*; client reason: .*)\Z",
        {"kind": "state", "state_to": "PreparingRebalance"},
    ),
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
        rf"^\[GroupId {_GROUP}\] Converted the (?:empty )?classic group to a (?:consumer|streams) group\.?\Z",
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

_CONSUMER_GROUP = rf"^\[GroupId {_GROUP}\] "
_STATIC = r"[Ss]tatic [Mm]ember (?P<member_id>.+) with instance id (?P<instance_id>.+)"
_HEARTBEAT = {"api": "ConsumerGroupHeartbeat"}
_JOINED = {"kind": "member", "change": "added", "cause": "member_join"}

CONSUMER_GROUPS = (
    LinePattern(
        _CONSUMER_GROUP + r"Bumped group epoch to (?P<generation>\d+)(?: with metadata hash -?\d+)?\.\Z",
        {"kind": "state", "state_to": "Assigning"},
    ),
    LinePattern(
        _CONSUMER_GROUP + r"Computed a new target assignment for epoch (?P<generation>\d+) with '(?P<assignor>[^']*)'"
        r" assignor in \d+ms(?:: .*)?\.\Z",
        {"kind": "state", "state_from": "Assigning", "state_to": "Reconciling", "cause": "assigned"},
    ),
    LinePattern(
        rf"^\[GroupId={_GROUP}\] Unloaded group metadata for group epoch (?P<generation>\d+)\.\Z",
        {"kind": "state", "state_to": "Dead", "cause": "unloaded"},
    ),
    LinePattern(
        rf"^Loaded consumer group {_GROUP} with (?P<n_members>[1-9]\d*) members\.\Z",
        {"kind": "state", "state_to": "Stable", "cause": "loaded"},
    ),
    LinePattern(_CONSUMER_GROUP + rf"{_STATIC} joins the consumer group using the \w+ protocol\.\Z", _JOINED),
    LinePattern(_CONSUMER_GROUP + rf"Member {_MEMBER} joins the consumer group using the \w+ protocol\.\Z", _JOINED),
    LinePattern(
        _CONSUMER_GROUP + r"Static member with instance id (?P<instance_id>.+) re-joins the consumer group using the"
        rf" \w+ protocol\. Created a new member (?P<new_member_id>.+) to replace the existing member {_MEMBER}\.\Z",
        _REPLACED | _HEARTBEAT,
    ),
    LinePattern(
        _CONSUMER_GROUP + r"Dynamic member with unknown member id joins the consumer group\."
        rf" Created a new member id {_MEMBER} and requesting the member to rejoin with this id\.\Z",
        {"kind": "member", "change": "pending", "cause": "member_id_required"},
    ),
    LinePattern(
        _CONSUMER_GROUP + rf"{_STATIC} temporarily left the consumer group\.\Z",
        {"kind": "member", "change": "away", "cause": "member_leave"},
    ),
    LinePattern(_CONSUMER_GROUP + rf"{_STATIC} left the consumer group\.\Z", _LEFT),
    LinePattern(_CONSUMER_GROUP + rf"Member {_MEMBER} left the consumer group\.\Z", _LEFT),
    LinePattern(
        _CONSUMER_GROUP + rf"{_STATIC} has left group through explicit `LeaveGroup` request;"
        r" client reason: (?P<client_reason>.*)\Z",
        _LEFT,
    ),
    LinePattern(
        _CONSUMER_GROUP + rf"Dynamic member {_MEMBER} has left group through explicit `LeaveGroup` request;"
        r" client reason: (?P<client_reason>.*)\Z",
        _LEFT,
    ),
    LinePattern(
        _CONSUMER_GROUP + rf"Member {_MEMBER} fenced from the group because the member session expired\.*\Z",
        {"kind": "member", "change": "removed", "cause": "session_expired"},
    ),
    LinePattern(
        _CONSUMER_GROUP + rf"Member {_MEMBER} fenced from the group because it failed to transition from epoch -?\d+"
        r" within \d+ms\.*\Z",
        {"kind": "member", "change": "removed", "cause": "revocation_timeout"},
    ),
    LinePattern(
        # a member with the classic protocol
        _CONSUMER_GROUP + rf"Member {_MEMBER} fenced from the group because the member failed to (?:join|sync) within"
        r" .*\Z",
        {"kind": "member", "change": "removed", "cause": "sync_timeout"},
    ),
    LinePattern(
        # "is is owned" in 3.9
        _CONSUMER_GROUP + rf"{_STATIC} cannot join the group because the instance id is (?:is )?owned by member"
        r" (?P<new_member_id>.+)\.\Z",
        {"kind": "member", "change": "refused", "cause": "fenced", "error": "UNRELEASED_INSTANCE_ID"} | _HEARTBEAT,
    ),
    LinePattern(
        _CONSUMER_GROUP + rf"{_STATIC} is fenced by existing member (?P<new_member_id>.+)\.\Z",
        {"kind": "member", "change": "refused", "cause": "fenced", "error": "FENCED_INSTANCE_ID"} | _HEARTBEAT,
    ),
    LinePattern(
        # logged at DEBUG
        _CONSUMER_GROUP + rf"Member {_MEMBER} updated its subscribed (?:topics|regex) to: .*\Z",
        {"cause": "metadata_change"},
    ),
)
"""Lines about consumer groups (KIP-848); where releases differ a comment says how.

3.9 has all of them but for `has left group`, which begins with `[Group …]` there. "Bumped group epoch" has a metadata
hash since 4.1. The lines about reconciliation, and since 4.0 those about subscriptions, have the level DEBUG.
"""

OTHER_GROUPS = (
    LinePattern(r"^\[GroupId (?P<group_id>.+)\]\[MemberId .+\] "),
    LinePattern(rf"^\[GroupId {_GROUP}\] (?:Streams member|Member) .+ (?:joins|left) the (?:share|streams) group\b"),
    LinePattern(rf"^\[GroupId {_GROUP}\] Streams member .+ fenced from the group because "),
    LinePattern(rf"^Loaded (?:share|streams) group {_GROUP} with \d+ members\.\Z"),
)
"""Lines that show that a group is a share group or a streams group: later lines about it are ignored, too."""

KNOWN = STATES + MEMBERS + CONSUMER_GROUPS

IS_BARE = re.compile(
    r"^(?:Starting up\.|Startup complete\.|Shutting down\.|Shutdown complete\.|(?:Elected|Resigned) as the group"
    r"|(?:Scheduling|Started|Finished|Loading|Ignored|Already|The coordinator .* is already) ?.*\b(?:un)?load"
    r"|Removed \d+ (?:expired )?offsets|Generated \d+ (?:tombstone )?records|The following groups were deleted"
    r"|Loaded (?:classic|consumer) group .* with 0 members|Loaded member |Group coordinator is already"
    r"|(?:Closing c|C)oordinator runtime|\[GroupId .*\] (?:Computed new (?:metadata hash|subscription metadata)"
    r"|Member .* new assignment state:|Creating a simple consumer group|Scanned \d+ topics"
    r"|Converted the (?:empty )?(?:consumer|streams) group to a classic group|Refreshing regular expressions"
    r"|Received updated regular expressions))"
)
"""Messages that change no group, or repeat what another line says."""

BEGINS = re.compile(
    r"^(?:Preparing to rebalance group|Stabilized group|Assignment received from leader|Group .* with generation"
    r"|\[GroupId [^\]]*\] (?:Bumped group epoch|Computed a new target assignment|Member .* fenced from the group))\b"
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

_IS_CAUSE = tuple((name, re.compile(pattern, re.DOTALL)) for name, pattern in CAUSES)

_TRIGGER = re.compile(
    r"^(?:Adding new member|Member|[Ll]eader|[Rr]emoving member|Updating metadata for(?: static)? member"
    r"|Group's selectedProtocol will change because static member|explicit `LeaveGroup` request for \(|.*\(member:)"
    r" ?(.+?)(?: with group | with instance | (?:is )?joining | re-joining | on | during |, |\)(?: members)?\.?\Z"
    r"|; client reason: |\Z)",
    re.DOTALL,
)
_INSTANCES = tuple(
    re.compile(rf" with (?:group )?instance ?id {name}(?:; client reason: | joined with |\Z)", re.DOTALL)
    for name in (r"Some\((.+?)\)", "(.+?)")
)
_CLIENT_REASON = re.compile(r"; client reason: (.*)\Z", re.DOTALL)
_REMOVED = re.compile(r"^Removing (?:\w+\(|\[)(.+)[)\]] on pending sync request expiration", re.DOTALL)


def message(text: str) -> str:
    """Return a coordinator's message without its logger and thread; `text` follows the mark."""
    return _END.sub("", text.removeprefix(":").removeprefix(" "), count=1).rstrip()


def cause(reason: str) -> str:
    """Return the cause of a rebalance from its reason."""
    return next((name for name, pattern in _IS_CAUSE if pattern.search(reason)), "other")


def trigger(reason: str) -> str | None:
    """Return the member that triggered a rebalance, from its reason; None if it names none."""
    return _part(_TRIGGER, reason)


def instance(reason: str) -> str | None:
    """Return that member's group.instance.id."""
    names = (_part(pattern, reason) for pattern in _INSTANCES)
    name = next(filter(None, names), None)
    return None if name in ("None", "null") else name


def client_reason(reason: str) -> str | None:
    """Return the client's own reason inside Kafka's reason (KIP-800)."""
    return given(_part(_CLIENT_REASON, reason))


def given(client_reason: str | None) -> str | None:
    """Return None if Kafka logged that the client gave no reason."""
    return None if client_reason == "not provided" else client_reason


def removed(reason: str) -> list[str]:
    """Return the members removed because they did not sync; none for any other reason."""
    names = _part(_REMOVED, reason)
    return names.split(", ") if names else []


def _part(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] or None if match else None
