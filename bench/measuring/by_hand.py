"""Three messages read and written by hand with `struct`: one pass over the bytes with an offset.

They produce the same dataclasses as the codec, make the same checks (missing bytes, impossible lengths, any number of
tagged fields), and know a single version.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_I = struct.Struct(">i")
_IHI = struct.Struct(">ihi")
_IQI = struct.Struct(">iqi")
_NO_TAGS = b"\0"


class ShortError(ValueError):
    """The bytes end before the message, or contain an impossible value."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise ShortError("a varint of more than 5 bytes")


def _binary(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _varint(data, at)
    end = at + length - 1
    if end < at or end > len(data):
        raise ShortError("bytes are missing")
    return data[at:end], end


def _string(data: bytes, at: int) -> tuple[str, int]:
    length, at = _varint(data, at)
    end = at + length - 1
    if end < at or end > len(data):
        raise ShortError("text is missing")
    return data[at:end].decode(), end


def _nullable_string(data: bytes, at: int) -> tuple[str | None, int]:
    if not data[at]:
        return None, at + 1
    return _string(data, at)


def _tags(data: bytes, at: int) -> int:
    count, at = _varint(data, at)
    for _ in range(count):
        _, at = _varint(data, at)
        length, at = _varint(data, at)
        at += length
        if at > len(data):
            raise ShortError("a tagged field is missing")
    return at


def _count(data: bytes, at: int) -> tuple[int, int]:
    count, at = _varint(data, at)
    if not 0 < count <= len(data):
        raise ShortError("more elements than bytes")
    return count - 1, at


def _read_join_group_response(data: bytes) -> JoinGroupResponse:
    throttle_time_ms, error_code, generation_id = _IHI.unpack_from(data)
    protocol_type, at = _nullable_string(data, 10)
    protocol_name, at = _nullable_string(data, at)
    leader, at = _string(data, at)
    skip_assignment = data[at] != 0
    member_id, at = _string(data, at + 1)
    count, at = _count(data, at)
    members = []
    for _ in range(count):
        their_id, at = _string(data, at)
        instance_id, at = _nullable_string(data, at)
        metadata, at = _binary(data, at)
        at = _tags(data, at)
        members.append(JoinGroupResponseMember(member_id=their_id, group_instance_id=instance_id, metadata=metadata))
    _tags(data, at)
    return JoinGroupResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=tuple(members),
    )


def _read_heartbeat_request(data: bytes) -> HeartbeatRequest:
    group_id, at = _string(data, 0)
    (generation_id,) = _I.unpack_from(data, at)
    member_id, at = _string(data, at + 4)
    group_instance_id, at = _nullable_string(data, at)
    _tags(data, at)
    return HeartbeatRequest(
        group_id=group_id, generation_id=generation_id, member_id=member_id, group_instance_id=group_instance_id
    )


def _read_offset_commit_request(data: bytes) -> OffsetCommitRequest:
    group_id, at = _string(data, 0)
    (generation_id,) = _I.unpack_from(data, at)
    member_id, at = _string(data, at + 4)
    group_instance_id, at = _nullable_string(data, at)
    count, at = _count(data, at)
    topics = []
    for _ in range(count):
        name, at = _string(data, at)
        rows, at = _count(data, at)
        partitions = []
        for _ in range(rows):
            partition_index, committed_offset, committed_leader_epoch = _IQI.unpack_from(data, at)
            metadata, at = _nullable_string(data, at + 16)
            at = _tags(data, at)
            partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition_index,
                    committed_offset=committed_offset,
                    committed_leader_epoch=committed_leader_epoch,
                    committed_metadata=metadata,
                )
            )
        at = _tags(data, at)
        topics.append(OffsetCommitRequestTopic(name=name, partitions=tuple(partitions)))
    _tags(data, at)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=tuple(topics),
    )


def _prefix(number: int) -> bytes:
    if number < 0x80:
        return _SMALL[number]
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_SMALL = [bytes([number]) for number in range(0x80)]


def _text(value: str) -> bytes:
    data = value.encode()
    return _prefix(len(data) + 1) + data


def _nullable_text(value: str | None) -> bytes:
    return _NO_TAGS if value is None else _text(value)


def _raw(value: bytes) -> bytes:
    return _prefix(len(value) + 1) + value


def _write_join_group_response(message: JoinGroupResponse) -> bytes:
    parts = [
        _IHI.pack(message.throttle_time_ms, message.error_code, message.generation_id),
        _nullable_text(message.protocol_type),
        _nullable_text(message.protocol_name),
        _text(message.leader),
        b"\1" if message.skip_assignment else b"\0",
        _text(message.member_id),
        _prefix(len(message.members) + 1),
    ]
    for member in message.members:
        parts += (
            _text(member.member_id),
            _nullable_text(member.group_instance_id),
            _raw(member.metadata),
            _NO_TAGS,
        )
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _write_heartbeat_request(message: HeartbeatRequest) -> bytes:
    return b"".join(
        (
            _text(message.group_id),
            _I.pack(message.generation_id),
            _text(message.member_id),
            _nullable_text(message.group_instance_id),
            _NO_TAGS,
        )
    )


def _write_offset_commit_request(message: OffsetCommitRequest) -> bytes:
    parts = [
        _text(message.group_id),
        _I.pack(message.generation_id_or_member_epoch),
        _text(message.member_id),
        _nullable_text(message.group_instance_id),
        _prefix(len(message.topics) + 1),
    ]
    for topic in message.topics:
        parts += (_text(topic.name), _prefix(len(topic.partitions) + 1))
        for row in topic.partitions:
            parts += (
                _IQI.pack(row.partition_index, row.committed_offset, row.committed_leader_epoch),
                _nullable_text(row.committed_metadata),
                _NO_TAGS,
            )
        parts.append(_NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


BY_HAND: dict[type, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    JoinGroupResponse: (_read_join_group_response, _write_join_group_response),
    HeartbeatRequest: (_read_heartbeat_request, _write_heartbeat_request),
    OffsetCommitRequest: (_read_offset_commit_request, _write_offset_commit_request),
}
"""Reader and writer of each class, in the version of its sample."""
