"""Groups files: groups and their committed offsets as JSON lines.

A line is a group or a committed offset. Two lines describe a stable group of two static members with one offset:

    {"group_id": "svc", "members": [{"instance_id": "a", "assignment": {"orders": [0]}}, {"instance_id": "b"}]}
    {"group_id": "svc", "topic": "orders", "partition": 0, "offset": 5}

A group needs only `group_id`, an offset the fields of the second line. The defaults:

| field | default |
|---|---|
| `type` | "classic"; the lines of groups of type "consumer" are described in `consumer_group_lines` |
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
from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from koordinator.wire.messages.share_group_records import ShareGroupMetadataKey
from koordinator.wire.messages.streams_group_records import StreamsGroupMetadataKey

from ..core.groups.classic.group import ClassicGroup
from ..core.groups.consumer.group import ConsumerGroup
from ..core.groups.records import CoordinatorRecord
from . import consumer_group_lines, json_lines
from .group_values import (
    SESSION_TIMEOUT_MS,
    Line,
    assignment_bytes,
    assignment_value,
    int32,
    int64,
    member_identity,
    partitions_in,
    require_unique,
    short_text,
    short_text_or_null,
    subscription_bytes,
    subscription_value,
)
from .json_lines import BadLine, LineError, array, mapping, require_fields, required
from .records_file import topic_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.offsets_topic import Key as AnyKey

    from .consumer_group_lines import TopicId, TopicName

    Key = OffsetCommitKey | GroupMetadataKey
    """The key of a record that is a line of its own."""

GROUP_FIELDS = ("group_id", "type", "generation", "protocol_type", "protocol", "leader", "state_changed_at", "members")
MEMBER_FIELDS = (
    *("member_id", "instance_id", "client_id", "client_host"),
    *("session_timeout_ms", "rebalance_timeout_ms", "subscription", "assignment"),
)
OFFSET_FIELDS = (
    *("group_id", "topic", "partition", "offset"),
    *("leader_epoch", "metadata", "commit_timestamp", "expire_timestamp"),
)
"""The fields of lines and of members."""

PROTOCOL_TYPE, PROTOCOL = "consumer", "range"

SHARE, STREAMS = "share", "streams"
"""The types of groups that have no line."""


def to_lines(records: Iterable[CoordinatorRecord], topic_name: TopicName) -> list[Line]:
    """Return the latest groups and offsets, sorted: each group, then its offsets by topic and partition.

    Share groups are left out, as their offsets are in `__share_group_state`, and of streams groups all but the offsets.
    `topic_name` returns the topic with an id, of which the partitions of consumer groups are; None if it is gone.
    """
    last: dict[Key, OffsetCommitValue | GroupMetadataValue] = {}
    others: list[CoordinatorRecord] = []
    for record in records:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey | GroupMetadataKey):
            last.pop(key, None)
            if isinstance(value, OffsetCommitValue | GroupMetadataValue):
                last[key] = value
        else:
            others.append(record)
    lines = {_sort_key(key): _line(key, value) for key, value in last.items()}
    for group_id, group in consumer_group_lines.replayed(others).items():
        lines[group_id, 0, "", 0] = consumer_group_lines.group_line(group, topic_name)
    return [lines[key] for key in sorted(lines)]


def left_out(records: Iterable[CoordinatorRecord]) -> dict[str, str]:
    """Return the groups without a line of their own, with their types: "share" or "streams"."""
    groups: dict[str, str] = {}
    for record in records:
        if isinstance(record.key, ShareGroupMetadataKey | StreamsGroupMetadataKey):
            groups.pop(record.key.group, None)
            if record.value is not None:
                kind = SHARE if isinstance(record.key, ShareGroupMetadataKey) else STREAMS
                groups[record.key.group] = kind
    return groups


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
        "subscription": subscription_value(member.subscription),
        "assignment": assignment_value(member.assignment),
    }


def parse_groups(lines: Iterable[str | bytes], file: str, now: int, topic_id: TopicId) -> list[CoordinatorRecord]:
    """Return the records of a groups file, in file order; `now` (ms) is the default of timestamps.

    `topic_id` returns the id of a topic, by which consumer groups name it; None if it does not exist. Raises
    LineError at the first bad line.
    """
    records: list[CoordinatorRecord] = []
    line_numbers: dict[AnyKey, int] = {}
    for number, written in json_lines.objects(lines, file, lambda data: _records(data, now, topic_id)):
        before = line_numbers.setdefault(written[0].key, number)
        if before != number:
            raise LineError(file, number, f"{_name(written[0].key)} is on line {before} already")
        records += written
    return records


def _name(key: AnyKey) -> str:
    if isinstance(key, OffsetCommitKey):
        return f"the offset of group {key.group!r} in {key.topic}-{key.partition}"
    return f"group {key.group!r}"


def _records(data: Line, now: int, topic_id: TopicId) -> list[CoordinatorRecord]:
    if set(data) & (set(OFFSET_FIELDS) - {"group_id"}):
        return [_offset(data, now)]
    group_id = short_text("group_id", required(data, "group_id"))
    classic = CoordinatorRecord(GroupMetadataKey(group=group_id), None)
    kind = data.get("type", ClassicGroup.kind)
    if kind == ConsumerGroup.kind:
        # a record of a classic group would stand for a second group of this id
        return [classic, *consumer_group_lines.group_records(group_id, data, now, topic_id)]
    require_fields(data, GROUP_FIELDS)
    if kind != ClassicGroup.kind:
        raise BadLine(f"type: expected {ClassicGroup.kind} or {ConsumerGroup.kind}, not {kind!r}")
    return [replace(classic, value=_group(data, now))]


def _offset(data: Line, now: int) -> CoordinatorRecord:
    require_fields(data, OFFSET_FIELDS)
    key = OffsetCommitKey(
        group=short_text("group_id", required(data, "group_id")),
        topic=topic_name(required(data, "topic")),
        partition=int32("partition", required(data, "partition")),
    )
    value = OffsetCommitValue(
        offset=int64("offset", required(data, "offset")),
        leader_epoch=int32("leader_epoch", data.get("leader_epoch", -1)),
        metadata=short_text("metadata", data.get("metadata", "")),
        commit_timestamp=int64("commit_timestamp", data.get("commit_timestamp", now)),
        expire_timestamp=int64("expire_timestamp", data.get("expire_timestamp", -1)),
    )
    if value.expire_timestamp != -1 and value.leader_epoch != -1:
        raise BadLine("expire_timestamp, leader_epoch: a record has room for only one of them")
    return CoordinatorRecord(key, value)


def _group(data: Line, now: int) -> GroupMetadataValue:
    rows = [mapping(f"members[{place}]", row) for place, row in enumerate(array("members", data.get("members", [])))]
    topics = _topics_assigned(rows)
    members = tuple(_member(place, row, topics) for place, row in enumerate(rows))
    ids = [member.member_id for member in members]
    require_unique("member_id", ids)
    require_unique("instance_id", [each.group_instance_id for each in members if each.group_instance_id is not None])
    protocol = short_text_or_null("protocol", data.get("protocol", PROTOCOL if members else None))
    leader = short_text_or_null("leader", data.get("leader", ids[0] if members else None))
    if members and protocol is None:
        raise BadLine("protocol: a group with members has one")
    if members and leader not in ids:
        raise BadLine(f"leader: expected one of {', '.join(map(repr, ids))}, not {leader!r}")
    return GroupMetadataValue(
        protocol_type=short_text("protocol_type", data.get("protocol_type", PROTOCOL_TYPE if members else "")),
        generation=int32("generation", data.get("generation", 1 if members else 0)),
        protocol=protocol,
        leader=leader,
        current_state_timestamp=int64("state_changed_at", data.get("state_changed_at", now)),
        members=members,
    )


def _topics_assigned(rows: Iterable[Line]) -> list[object]:
    """Return the default subscription of a group: the topics in its assignments."""
    assignments = [row.get("assignment") for row in rows]
    partitions = [
        partitions_in(each) for each in assignments if isinstance(each, dict) and not json_lines.is_base64(each)
    ]
    return list(dict.fromkeys(topic for each in partitions if isinstance(each, dict) for topic in each))


def _member(place: int, data: Line, topics: list[object]) -> MemberMetadata:
    at = f"members[{place}]"
    require_fields(data, MEMBER_FIELDS, f"{at}: ")
    identity = member_identity(at, place, data)
    return MemberMetadata(
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        client_id=identity.client_id,
        client_host=identity.client_host,
        rebalance_timeout=identity.rebalance_timeout_ms,
        session_timeout=int32(f"{at}.session_timeout_ms", data.get("session_timeout_ms", SESSION_TIMEOUT_MS)),
        subscription=subscription_bytes(data.get("subscription", {"topics": topics}), f"{at}.subscription"),
        assignment=assignment_bytes(data.get("assignment", {}), f"{at}.assignment"),
    )
