"""Lines of groups files for consumer groups (KIP-848), whose records name topics by their ids.

    {"group_id": "svc", "type": "consumer", "members": [{"topics": ["orders"], "assignment": {"orders": [0, 1]}}]}

| field | default |
|---|---|
| `epoch`, `target_epoch` | 1; that of the group. With members below the target the group is not Stable |
| `metadata_hash` | 0: the first heartbeat computes it, and so raises the epoch |
| `patterns` | {}; the topics of each resolved pattern |
| a member's `member_id`, `instance_id`, `client_id`, `client_host`, `rebalance_timeout_ms` | as in a classic group |
| `topics`, `pattern` | every topic in the group's assignments; "" for none |
| `rack`, `assignor` | null |
| `epoch`, `previous_epoch` | `target_epoch`; that of the member |
| `state` | "STABLE", or "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS" |
| `assignment`, `pending_revocation` | {} |
| `target` | the assignment |
| `classic` | null; with the classic protocol `{"session_timeout_ms": …, "protocols": {name: subscription}}` |

The epochs of single partitions, since 4.3, are not kept: they become those of their members. Partitions of topics that
are gone are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionValue,
    Key,
)

from ..core.clock import GroupClock
from ..core.dialect import Dialect
from ..core.groups.consumer import records as write
from ..core.groups.consumer.group import ConsumerGroup
from ..core.groups.consumer.member import ConsumerMember, MemberState
from ..core.groups.modern.member import sorted_names
from ..core.journal import Journal
from .group_values import (
    SESSION_TIMEOUT_MS,
    Line,
    int32,
    int64,
    member_identity,
    numbers_by_topic,
    require_unique,
    short_text,
    short_text_or_null,
    subscription_bytes,
    subscription_value,
)
from .json_lines import BadLine, array, mapping, require_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from ..core.groups.records import CoordinatorRecord

    TopicName = Callable[[UUID], str | None]
    TopicId = Callable[[str], UUID | None]

GROUP_FIELDS = ("group_id", "type", "epoch", "target_epoch", "metadata_hash", "patterns", "members")
MEMBER_FIELDS = (
    *("member_id", "instance_id", "client_id", "client_host", "rebalance_timeout_ms", "rack", "topics", "pattern"),
    *("assignor", "epoch", "previous_epoch", "state", "assignment", "pending_revocation", "target", "classic"),
)
CLASSIC_FIELDS = ("session_timeout_ms", "protocols")

FIRST_EPOCH = 1
STATES = tuple(state.name for state in MemberState if state is not MemberState.UNKNOWN)


def empty_group(group_id: str) -> ConsumerGroup:
    """Return a group to replay records in; its clock stands still."""
    return ConsumerGroup(group_id, 0, GroupClock("manual", 0), 0, Dialect())


def replayed(records: Iterable[CoordinatorRecord]) -> dict[str, ConsumerGroup]:
    """Return the consumer groups that records describe, by id."""
    groups: dict[str, ConsumerGroup] = {}
    for record in records:
        if not isinstance(record.key, Key):
            continue
        group_id = record.key.group
        if isinstance(record.key, ConsumerGroupMetadataKey) and record.value is None:
            groups.pop(group_id, None)
        elif record.value is not None or group_id in groups:
            groups.setdefault(group_id, empty_group(group_id)).replay(record, Journal())
    return groups


def group_line(group: ConsumerGroup, topic_name: TopicName) -> Line:
    """Return the line of a group."""
    return {
        "group_id": group.id,
        "type": group.kind,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "metadata_hash": group.metadata_hash,
        "patterns": {pattern: list(resolved.topics) for pattern, resolved in group.patterns.items()},
        "members": [_member_line(group, member, topic_name) for member in group.members.values()],
    }


def _member_line(group: ConsumerGroup, member: ConsumerMember, topic_name: TopicName) -> Line:
    def named(partitions: Mapping[UUID, Iterable[int]]) -> Line:
        names = {topic: topic_name(topic) for topic in partitions}
        return {name: list(partitions[topic]) for topic, name in names.items() if name is not None}

    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "rack": member.rack_id,
        "topics": list(member.names),
        "pattern": member.regex,
        "assignor": member.assignor,
        "epoch": member.epoch,
        "previous_epoch": member.previous_epoch,
        "state": member.state.name,
        "assignment": named(member.assigned),
        "pending_revocation": named(member.pending),
        "target": named(group.targets.get(member.id, {})),
        "classic": _classic_line(member.classic),
    }


def _classic_line(classic: ClassicMemberMetadata | None) -> Line | None:
    if classic is None:
        return None
    protocols = {each.name: subscription_value(each.metadata) for each in classic.supported_protocols}
    return {"session_timeout_ms": classic.session_timeout_ms, "protocols": protocols}


def group_records(group_id: str, data: Line, now: int, topic_id: TopicId) -> list[CoordinatorRecord]:
    """Return the records of a line: tombstones for an earlier group, then the group. Raises BadLine."""
    require_fields(data, GROUP_FIELDS)
    rows = [mapping(f"members[{place}]", row) for place, row in enumerate(array("members", data.get("members", [])))]
    assignments = [mapping("assignment", row.get("assignment", {})) for row in rows]
    topics: list[object] = list(dict.fromkeys(topic for each in assignments for topic in each))
    epoch = int32("epoch", data.get("epoch", FIRST_EPOCH))
    target_epoch = int32("target_epoch", data.get("target_epoch", epoch))
    members = [_member(place, row, topics, target_epoch, topic_id) for place, row in enumerate(rows)]
    require_unique("member_id", [member.id for member in members])
    require_unique("instance_id", [member.instance_id for member in members if member.instance_id is not None])
    patterns = mapping("patterns", data.get("patterns", {}))
    records = [
        *write.group_tombstones(group_id, ()),
        write.group_record(group_id, epoch, int64("metadata_hash", data.get("metadata_hash", 0))),
        write.RECORD_TYPES.target_epoch_record(group_id, target_epoch, 0),
    ]
    for pattern, names in patterns.items():
        found = _names(f"patterns.{pattern}", names)
        resolved = ConsumerGroupRegularExpressionValue(topics=found, version=0, timestamp=now)
        records.append(write.pattern_record(group_id, pattern, resolved))
    for place, (member, row) in enumerate(zip(members, rows, strict=True)):
        target = row.get("target", row.get("assignment", {}))
        records += [
            write.member_record(group_id, member),
            write.target_record(group_id, member.id, _by_id(f"members[{place}].target", target, topic_id)),
            write.current_record(group_id, member, with_epochs=False),
        ]
    return records


def _member(place: int, data: Line, topics: list[object], target_epoch: int, topic_id: TopicId) -> ConsumerMember:
    at = f"members[{place}]"
    require_fields(data, MEMBER_FIELDS, f"{at}: ")
    identity = member_identity(at, place, data)
    epoch = int32(f"{at}.epoch", data.get("epoch", target_epoch))
    state = data.get("state", STATES[0])
    if state not in STATES:
        raise BadLine(f"{at}.state: expected one of {', '.join(STATES)}, not {state!r}")
    assigned, pending = (
        {
            topic: dict.fromkeys(numbers, max(epoch, 0))
            for topic, numbers in _by_id(f"{at}.{field}", data.get(field, {}), topic_id).items()
        }
        for field in ("assignment", "pending_revocation")
    )
    return ConsumerMember(
        id=identity.member_id,
        instance_id=identity.instance_id,
        client_id=identity.client_id,
        client_host=identity.client_host,
        rebalance_timeout_ms=identity.rebalance_timeout_ms,
        rack_id=short_text_or_null(f"{at}.rack", data.get("rack")),
        names=_names(f"{at}.topics", data.get("topics", [] if data.get("pattern") else topics)),
        regex=short_text(f"{at}.pattern", data.get("pattern", "")),
        assignor=short_text_or_null(f"{at}.assignor", data.get("assignor")),
        classic=_classic(f"{at}.classic", data.get("classic")),
        epoch=epoch,
        previous_epoch=int32(f"{at}.previous_epoch", data.get("previous_epoch", epoch)),
        state=MemberState[str(state)],
        assigned=assigned,
        pending=pending,
    )


def _classic(field: str, value: object) -> ClassicMemberMetadata | None:
    if value is None:
        return None
    data = mapping(field, value)
    require_fields(data, CLASSIC_FIELDS, f"{field}: ")
    protocols = mapping(f"{field}.protocols", data.get("protocols", {}))
    return ClassicMemberMetadata(
        session_timeout_ms=int32(f"{field}.session_timeout_ms", data.get("session_timeout_ms", SESSION_TIMEOUT_MS)),
        supported_protocols=tuple(
            ClassicProtocol(name=name, metadata=subscription_bytes(each, f"{field}.protocols.{name}"))
            for name, each in protocols.items()
        ),
    )


def _names(field: str, value: object) -> tuple[str, ...]:
    return sorted_names(short_text(field, name) for name in array(field, value))


def _by_id(field: str, value: object, topic_id: TopicId) -> dict[UUID, tuple[int, ...]]:
    found = {}
    for topic, numbers in numbers_by_topic(field, value).items():
        known = topic_id(topic)
        if known is None:
            raise BadLine(f"{field}: the topic {topic!r} does not exist: create it first")
        found[known] = numbers
    return found
