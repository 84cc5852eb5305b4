"""Groups files: consumer groups and their committed offsets as JSON lines.

A line is a group or a committed offset. Two lines describe a stable group of two static members with one offset:

    {"group_id": "svc", "members": [{"instance_id": "a", "assignment": {"orders": [0]}}, {"instance_id": "b"}]}
    {"group_id": "svc", "topic": "orders", "partition": 0, "offset": 5}

A group needs only `group_id`, an offset the fields of the second line. The defaults:

| field | default |
|---|---|
| `generation` | 1, or 0 without members |
| `protocol_type`, `protocol` | "consumer" and "range"; "" and null without members |
| `leader` | the first member |
| `state_changed_at`, `commit_timestamp` | now; in ms since the epoch |
| a member's `member_id` | in Kafka's form, of the instance id or the client id and the member's position |
| `instance_id` | null: a dynamic member |
| `client_id`, `client_host` | "consumer", "/127.0.0.1" |
| `session_timeout_ms`, `rebalance_timeout_ms` | 45,000 and 300,000, as in Java consumers |
| `subscription` | every topic in the group's assignments |
| `assignment` | {}: no partitions |
| `leader_epoch`, `metadata`, `expire_timestamp` | -1 (none), "", -1 (the broker's retention) |

A group with members is Stable after loading, a group without members is Empty.

`subscription` and `assignment` follow the consumer protocol: `{"topics": ["orders"]}` and `{"orders": [0, 1]}`. A
subscription may also have `owned` (partitions like an assignment), `generation`, `rack`, `user_data` and the `version`
of the format; an assignment with further fields is `{"partitions": {…}, "version": …, "user_data": …}`. Other bytes are
`{"base64": "…"}`, empty bytes are null. Numbers have the range of the record's field. Topic ids, which Kafka 4.1 and
newer stores with offsets, are omitted, because another cluster has other ids.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.messages import consumer_protocol
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from koordinator.wire.primitives import Malformed

from ..core.groups.records import CoordinatorRecord
from . import json_lines
from .json_lines import BadLine, LineError, array, describe, integer, mapping, require_fields, required, text
from .records_file import topic_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.messages.offsets_topic import Key as AnyKey

    Key = OffsetCommitKey | GroupMetadataKey
    """The key of a record that has a line: consumer groups (KIP-848) have none."""

GROUP_FIELDS = ("group_id", "generation", "protocol_type", "protocol", "leader", "state_changed_at", "members")
MEMBER_FIELDS = (
    *("member_id", "instance_id", "client_id", "client_host"),
    *("session_timeout_ms", "rebalance_timeout_ms", "subscription", "assignment"),
)
OFFSET_FIELDS = (
    *("group_id", "topic", "partition", "offset"),
    *("leader_epoch", "metadata", "commit_timestamp", "expire_timestamp"),
)
SUBSCRIPTION_FIELDS = ("topics", "owned", "generation", "rack", "user_data", "version")
ASSIGNMENT_FIELDS = ("partitions", "user_data", "version")
"""The fields of lines and of their objects."""

PROTOCOL_TYPE, PROTOCOL = "consumer", "range"
CLIENT_ID, CLIENT_HOST = "consumer", "/127.0.0.1"
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 45_000, 300_000

TEXT_BYTES_MAX = 2**15 - 1
"""The maximum length of a string in bytes: Kafka has 16 bits for it."""

Line = dict[str, object]


def to_lines(records: Iterable[CoordinatorRecord]) -> list[Line]:
    """Return the latest groups and offsets, sorted: each group, then its offsets by topic and partition."""
    last: dict[Key, OffsetCommitValue | GroupMetadataValue] = {}
    for record in records:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey | GroupMetadataKey):
            last.pop(key, None)
            if isinstance(value, OffsetCommitValue | GroupMetadataValue):
                last[key] = value
    return [_line(key, last[key]) for key in sorted(last, key=_sort_key)]


def to_json(line: Line) -> str:
    """Return a line as text."""
    return json.dumps(line, ensure_ascii=False)


def _sort_key(key: Key) -> tuple[str, int, str, int]:
    return (key.group, 0, "", 0) if isinstance(key, GroupMetadataKey) else (key.group, 1, key.topic, key.partition)


def _line(key: Key, value: OffsetCommitValue | GroupMetadataValue) -> Line:
    if isinstance(value, OffsetCommitValue):
        assert isinstance(key, OffsetCommitKey)
        return _offset_line(key, value)
    return {
        "group_id": key.group,
        "generation": value.generation,
        "protocol_type": value.protocol_type,
        "protocol": value.protocol,
        "leader": value.leader,
        "state_changed_at": value.current_state_timestamp,
        "members": [_member_line(member) for member in value.members],
    }


def _offset_line(key: OffsetCommitKey, value: OffsetCommitValue) -> Line:
    line: Line = {
        "group_id": key.group,
        "topic": key.topic,
        "partition": key.partition,
        "offset": value.offset,
        "leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp": value.commit_timestamp,
    }
    return line if value.expire_timestamp == -1 else line | {"expire_timestamp": value.expire_timestamp}


def _member_line(member: MemberMetadata) -> Line:
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": member.session_timeout,
        "rebalance_timeout_ms": member.rebalance_timeout,
        "subscription": _readable(member.subscription, _subscription_line, _subscription),
        "assignment": _readable(member.assignment, _assignment_line, _assignment),
    }


def _readable(data: bytes, line: Callable[[bytes], Line], read: Callable[[object], bytes]) -> Line | None:
    """Return the readable form of bytes if it encodes to the same bytes, else base64."""
    if not data:
        return None
    try:
        readable = line(data)
        if read(readable) == data:
            return readable
    except (Malformed, BadLine):
        pass
    return {**json_lines.to_base64(data)}


def _subscription_line(data: bytes) -> Line:
    subscription = consumer_protocol.read_subscription(data)
    line: Line = {"topics": list(subscription.topics)}
    if subscription.owned_partitions:
        line["owned"] = _by_topic(subscription.owned_partitions)
    if subscription.generation_id != -1:
        line["generation"] = subscription.generation_id
    if subscription.rack_id is not None:
        line["rack"] = subscription.rack_id
    return line | _rare_fields(data, subscription.user_data)


def _assignment_line(data: bytes) -> Line:
    assignment = consumer_protocol.read_assignment(data)
    partitions, rare = _by_topic(assignment.assigned_partitions), _rare_fields(data, assignment.user_data)
    return {"partitions": partitions, **rare} if rare else partitions


def _by_topic(rows: Iterable[TopicPartition]) -> Line:
    return {row.topic: list(row.partitions) for row in rows}


def _rare_fields(data: bytes, user_data: bytes | None) -> Line:
    """Return user data and version, without their usual values."""
    version = int.from_bytes(data[:2], "big", signed=True)
    line: Line = {} if user_data is None else {"user_data": json_lines.to_base64(user_data)}
    return line if version == consumer_protocol.NEWEST else line | {"version": version}


def parse_groups(lines: Iterable[str | bytes], file: str, now: int) -> list[CoordinatorRecord]:
    """Return the records of a groups file, in file order; `now` (ms) is the default of timestamps.

    Raises LineError at the first bad line.
    """
    records: list[CoordinatorRecord] = []
    line_numbers: dict[AnyKey, int] = {}
    for number, record in json_lines.objects(lines, file, lambda data: _record(data, now)):
        before = line_numbers.setdefault(record.key, number)
        if before != number:
            raise LineError(file, number, f"{_name(record.key)} is on line {before} already")
        records.append(record)
    return records


def _name(key: AnyKey) -> str:
    if isinstance(key, OffsetCommitKey):
        return f"the offset of group {key.group!r} in {key.topic}-{key.partition}"
    return f"group {key.group!r}"


def _record(data: Line, now: int) -> CoordinatorRecord:
    if set(data) & (set(OFFSET_FIELDS) - {"group_id"}):
        return _offset(data, now)
    require_fields(data, GROUP_FIELDS)
    group_id = _text("group_id", required(data, "group_id"))
    return CoordinatorRecord(GroupMetadataKey(group=group_id), _group(data, now))


def _offset(data: Line, now: int) -> CoordinatorRecord:
    require_fields(data, OFFSET_FIELDS)
    key = OffsetCommitKey(
        group=_text("group_id", required(data, "group_id")),
        topic=topic_name(required(data, "topic")),
        partition=_int32("partition", required(data, "partition")),
    )
    value = OffsetCommitValue(
        offset=_int64("offset", required(data, "offset")),
        leader_epoch=_int32("leader_epoch", data.get("leader_epoch", -1)),
        metadata=_text("metadata", data.get("metadata", "")),
        commit_timestamp=_int64("commit_timestamp", data.get("commit_timestamp", now)),
        expire_timestamp=_int64("expire_timestamp", data.get("expire_timestamp", -1)),
    )
    if value.expire_timestamp != -1 and value.leader_epoch != -1:
        raise BadLine("expire_timestamp, leader_epoch: a record has room for only one of them")
    return CoordinatorRecord(key, value)


def _group(data: Line, now: int) -> GroupMetadataValue:
    rows = [mapping(f"members[{place}]", row) for place, row in enumerate(array("members", data.get("members", [])))]
    topics = _topics_assigned(rows)
    members = tuple(_member(place, row, topics) for place, row in enumerate(rows))
    ids = [member.member_id for member in members]
    _require_unique("member_id", ids)
    _require_unique("instance_id", [each.group_instance_id for each in members if each.group_instance_id is not None])
    protocol = _text_or_null("protocol", data.get("protocol", PROTOCOL if members else None))
    leader = _text_or_null("leader", data.get("leader", ids[0] if members else None))
    if members and protocol is None:
        raise BadLine("protocol: a group with members has one")
    if members and leader not in ids:
        raise BadLine(f"leader: expected one of {', '.join(map(repr, ids))}, not {leader!r}")
    return GroupMetadataValue(
        protocol_type=_text("protocol_type", data.get("protocol_type", PROTOCOL_TYPE if members else "")),
        generation=_int32("generation", data.get("generation", 1 if members else 0)),
        protocol=protocol,
        leader=leader,
        current_state_timestamp=_int64("state_changed_at", data.get("state_changed_at", now)),
        members=members,
    )


def _topics_assigned(rows: Iterable[Line]) -> list[object]:
    """Return the default subscription of a group: the topics in its assignments."""
    assignments = [row.get("assignment") for row in rows]
    partitions = [
        _partitions_in(each) for each in assignments if isinstance(each, dict) and not json_lines.is_base64(each)
    ]
    return list(dict.fromkeys(topic for each in partitions if isinstance(each, dict) for topic in each))


def _member(place: int, data: Line, topics: list[object]) -> MemberMetadata:
    at = f"members[{place}]"
    require_fields(data, MEMBER_FIELDS, f"{at}: ")
    instance_id = _text_or_null(f"{at}.instance_id", data.get("instance_id"))
    client_id = _text(f"{at}.client_id", data.get("client_id", CLIENT_ID))
    default_id = f"{client_id if instance_id is None else instance_id}-{UUID(int=place + 1)}"
    return MemberMetadata(
        member_id=_text(f"{at}.member_id", data.get("member_id", default_id)),
        group_instance_id=instance_id,
        client_id=client_id,
        client_host=_text(f"{at}.client_host", data.get("client_host", CLIENT_HOST)),
        rebalance_timeout=_int32(f"{at}.rebalance_timeout_ms", data.get("rebalance_timeout_ms", REBALANCE_TIMEOUT_MS)),
        session_timeout=_int32(f"{at}.session_timeout_ms", data.get("session_timeout_ms", SESSION_TIMEOUT_MS)),
        subscription=_subscription(data.get("subscription", {"topics": topics}), f"{at}.subscription"),
        assignment=_assignment(data.get("assignment", {}), f"{at}.assignment"),
    )


def _require_unique(field: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise BadLine(f"members: two of them have the {field} {value!r}")


def _subscription(value: object, field: str = "subscription") -> bytes:
    if value is None:
        return b""
    data = mapping(field, value)
    if json_lines.is_base64(data):
        return json_lines.from_base64(field, data)
    require_fields(data, SUBSCRIPTION_FIELDS, f"{field}: ")
    if "topics" not in data:
        raise BadLine(f'{field}: expected {{"topics": [...]}}, {{"base64": "..."}} or null')
    subscription = ConsumerProtocolSubscription(
        topics=tuple(_text(f"{field}.topics", topic) for topic in array(f"{field}.topics", data["topics"])),
        user_data=_user_data(field, data),
        owned_partitions=_partitions(f"{field}.owned", data.get("owned", {})),
        generation_id=_int32(f"{field}.generation", data.get("generation", -1)),
        rack_id=_text_or_null(f"{field}.rack", data.get("rack")),
    )
    version = _version(field, data)
    encoded = consumer_protocol.write_subscription(subscription, version)
    if consumer_protocol.read_subscription(encoded) != subscription:
        raise BadLine(f"{field}: version {version} has no room for all of {', '.join(sorted(data))}")
    return encoded


def _assignment(value: object, field: str = "assignment") -> bytes:
    if value is None:
        return b""
    data = mapping(field, value)
    if json_lines.is_base64(data) and not isinstance(data["base64"], list):
        return json_lines.from_base64(field, data)
    partitions = _partitions_in(data)
    if partitions is data:
        return consumer_protocol.write_assignment(
            ConsumerProtocolAssignment(assigned_partitions=_partitions(field, data))
        )
    require_fields(data, ASSIGNMENT_FIELDS, f"{field}: ")
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=_partitions(f"{field}.partitions", partitions), user_data=_user_data(field, data)
    )
    return consumer_protocol.write_assignment(assignment, _version(field, data))


def _partitions_in(assignment: Line) -> object:
    """Return the partitions by topic: the field `partitions` if it is an object, else the assignment itself."""
    partitions = assignment.get("partitions")
    return partitions if isinstance(partitions, dict) else assignment


def _partitions(field: str, value: object) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(
            topic=_text(field, topic),
            partitions=tuple(_int32(f"{field}.{topic}", each) for each in array(f"{field}.{topic}", numbers)),
        )
        for topic, numbers in mapping(field, value).items()
    )


def _user_data(field: str, data: Line) -> bytes | None:
    value = data.get("user_data")
    if value is None:
        return None
    if not json_lines.is_base64(value):
        raise BadLine(f'{field}.user_data: expected {{"base64": "..."}} or null, not {describe(value)}')
    return json_lines.from_base64(f"{field}.user_data", value)


def _version(field: str, data: Line) -> int:
    newest = consumer_protocol.NEWEST
    return integer(f"{field}.version", data.get("version", newest), 0, newest)


def _text(field: str, value: object) -> str:
    string = text(field, value)
    size = len(string.encode())
    if size > TEXT_BYTES_MAX:
        raise BadLine(f"{field}: {size} bytes; {TEXT_BYTES_MAX} are allowed")
    return string


def _text_or_null(field: str, value: object) -> str | None:
    return None if value is None else _text(field, value)


def _int32(field: str, value: object) -> int:
    return integer(field, value, -(2**31), 2**31 - 1)


def _int64(field: str, value: object) -> int:
    return integer(field, value, -(2**63), 2**63 - 1)
