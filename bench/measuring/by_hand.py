"""The same messages as one writes them by hand with `struct`: one pass over the bytes with an offset.

They make the dataclasses that ours make, check what ours check (missing bytes, lengths that cannot be, tagged fields
of any number), and know only the one version.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from koordinator.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from koordinator.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_I = struct.Struct(">i")
_II = struct.Struct(">ii")
_H = struct.Struct(">h")
_HIII = struct.Struct(">hiii")
_IHI = struct.Struct(">ihi")
_IHQQQ = struct.Struct(">ihqqq")
_IQI = struct.Struct(">iqi")
_IQ = struct.Struct(">iq")
_QI = struct.Struct(">qi")
_QQ = struct.Struct(">qq")
_NO_TAGS = b"\0"
_NO_EPOCH, _NO_LEADER, _NO_SNAPSHOT = EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId()


class ShortError(ValueError):
    """The bytes end before the message does, or say what cannot be."""


# -- reading: each takes the bytes and where to begin, and gives the value and where it ends ---------------------


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


def _nullable_binary(data: bytes, at: int) -> tuple[bytes | None, int]:
    if not data[at]:
        return None, at + 1
    return _binary(data, at)


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


def _int32s(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _count(data, at)
    return struct.unpack_from(f">{count}i", data, at), at + 4 * count


_uuids: dict[bytes, UUID] = {}


def _uuid(data: bytes, at: int) -> tuple[UUID, int]:
    end = at + 16
    raw = data[at:end]
    known = _uuids.get(raw)
    if known is None:
        known = _uuids[raw] = UUID(bytes=raw)
    return known, end


def _read_join_group_request(data: bytes) -> JoinGroupRequest:
    group_id, at = _string(data, 0)
    session_timeout_ms, rebalance_timeout_ms = _II.unpack_from(data, at)
    member_id, at = _string(data, at + 8)
    group_instance_id, at = _nullable_string(data, at)
    protocol_type, at = _string(data, at)
    count, at = _count(data, at)
    protocols = []
    for _ in range(count):
        name, at = _string(data, at)
        metadata, at = _binary(data, at)
        at = _tags(data, at)
        protocols.append(JoinGroupRequestProtocol(name=name, metadata=metadata))
    reason, at = _nullable_string(data, at)
    _tags(data, at)
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=tuple(protocols),
        reason=reason,
    )


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


def _read_metadata_request(data: bytes) -> MetadataRequest:
    topics: list[MetadataRequestTopic] | None = None
    at = 1
    if data[0]:
        count, at = _count(data, 0)
        topics = []
        for _ in range(count):
            topic_id, at = _uuid(data, at)
            name, at = _nullable_string(data, at)
            at = _tags(data, at)
            topics.append(MetadataRequestTopic(topic_id=topic_id, name=name))
    allow, include = data[at] != 0, data[at + 1] != 0
    _tags(data, at + 2)
    return MetadataRequest(
        topics=None if topics is None else tuple(topics),
        allow_auto_topic_creation=allow,
        include_topic_authorized_operations=include,
    )


def _read_metadata_response(data: bytes) -> MetadataResponse:
    (throttle_time_ms,) = _I.unpack_from(data)
    count, at = _count(data, 4)
    brokers = []
    for _ in range(count):
        (node_id,) = _I.unpack_from(data, at)
        host, at = _string(data, at + 4)
        (port,) = _I.unpack_from(data, at)
        rack, at = _nullable_string(data, at + 4)
        at = _tags(data, at)
        brokers.append(MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack))
    cluster_id, at = _nullable_string(data, at)
    (controller_id,) = _I.unpack_from(data, at)
    count, at = _count(data, at + 4)
    topics = []
    for _ in range(count):
        (error_code,) = _H.unpack_from(data, at)
        name, at = _nullable_string(data, at + 2)
        topic_id, at = _uuid(data, at)
        is_internal = data[at] != 0
        partitions, at = _read_partitions(data, at + 1)
        (operations,) = _I.unpack_from(data, at)
        at = _tags(data, at + 4)
        topics.append(
            MetadataResponseTopic(
                error_code=error_code,
                name=name,
                topic_id=topic_id,
                is_internal=is_internal,
                partitions=partitions,
                topic_authorized_operations=operations,
            )
        )
    _tags(data, at)
    return MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=tuple(brokers),
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=tuple(topics),
    )


def _read_partitions(data: bytes, at: int) -> tuple[tuple[MetadataResponsePartition, ...], int]:
    count, at = _count(data, at)
    partitions = []
    for _ in range(count):
        error_code, partition_index, leader_id, leader_epoch = _HIII.unpack_from(data, at)
        replica_nodes, at = _int32s(data, at + 14)
        isr_nodes, at = _int32s(data, at)
        offline_replicas, at = _int32s(data, at)
        at = _tags(data, at)
        partitions.append(
            MetadataResponsePartition(
                error_code=error_code,
                partition_index=partition_index,
                leader_id=leader_id,
                leader_epoch=leader_epoch,
                replica_nodes=replica_nodes,
                isr_nodes=isr_nodes,
                offline_replicas=offline_replicas,
            )
        )
    return tuple(partitions), at


def _read_sync_group_request(data: bytes) -> SyncGroupRequest:
    group_id, at = _string(data, 0)
    (generation_id,) = _I.unpack_from(data, at)
    member_id, at = _string(data, at + 4)
    group_instance_id, at = _nullable_string(data, at)
    protocol_type, at = _nullable_string(data, at)
    protocol_name, at = _nullable_string(data, at)
    count, at = _count(data, at)
    assignments = []
    for _ in range(count):
        their_id, at = _string(data, at)
        assignment, at = _binary(data, at)
        at = _tags(data, at)
        assignments.append(SyncGroupRequestAssignment(member_id=their_id, assignment=assignment))
    _tags(data, at)
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=tuple(assignments),
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


def _read_fetch_response(data: bytes) -> FetchResponse:
    throttle_time_ms, error_code, session_id = _IHI.unpack_from(data)
    count, at = _count(data, 10)
    responses = []
    for _ in range(count):
        topic, at = _string(data, at)
        rows, at = _count(data, at)
        partitions = []
        for _ in range(rows):
            partition, at = _read_partition_data(data, at)
            partitions.append(partition)
        at = _tags(data, at)
        responses.append(FetchableTopicResponse(topic=topic, partitions=tuple(partitions)))
    _tags(data, at)
    return FetchResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, session_id=session_id, responses=tuple(responses)
    )


def _read_partition_data(data: bytes, at: int) -> tuple[PartitionData, int]:
    index, error_code, high_watermark, last_stable_offset, log_start_offset = _IHQQQ.unpack_from(data, at)
    at += _IHQQQ.size
    aborted: list[AbortedTransaction] | None = None
    if data[at]:
        count, at = _count(data, at)
        aborted = []
        for _ in range(count):
            producer_id, first_offset = _QQ.unpack_from(data, at)
            at = _tags(data, at + 16)
            aborted.append(AbortedTransaction(producer_id=producer_id, first_offset=first_offset))
    else:
        at += 1
    (preferred,) = _I.unpack_from(data, at)
    records, at = _nullable_binary(data, at + 4)
    partition = PartitionData(
        partition_index=index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=None if aborted is None else tuple(aborted),
        preferred_read_replica=preferred,
        records=records,
    )
    if not data[at]:
        return partition, at + 1
    return _read_partition_tags(partition, data, at)


def _read_partition_tags(partition: PartitionData, data: bytes, at: int) -> tuple[PartitionData, int]:
    """What is there only for followers, and for clients at the wrong broker."""
    count, at = _varint(data, at)
    for _ in range(count):
        tag, at = _varint(data, at)
        length, at = _varint(data, at)
        if at + length > len(data):
            raise ShortError("a tagged field is missing")
        if tag == 0:
            epoch, end_offset = _IQ.unpack_from(data, at)
            partition = replace(partition, diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset))
        elif tag == 1:
            leader, epoch = _II.unpack_from(data, at)
            partition = replace(partition, current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch))
        elif tag == 2:
            end_offset, epoch = _QI.unpack_from(data, at)
            partition = replace(partition, snapshot_id=SnapshotId(end_offset=end_offset, epoch=epoch))
        at += length
    return partition, at


# -- writing: parts into a list, joined at the end ----------------------------------------------------------------


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


def _numbers(values: Sequence[int]) -> bytes:
    return _prefix(len(values) + 1) + struct.pack(f">{len(values)}i", *values)


def _write_join_group_request(message: JoinGroupRequest) -> bytes:
    parts = [
        _text(message.group_id),
        _II.pack(message.session_timeout_ms, message.rebalance_timeout_ms),
        _text(message.member_id),
        _nullable_text(message.group_instance_id),
        _text(message.protocol_type),
        _prefix(len(message.protocols) + 1),
    ]
    for protocol in message.protocols:
        parts += (_text(protocol.name), _raw(protocol.metadata), _NO_TAGS)
    parts += (_nullable_text(message.reason), _NO_TAGS)
    return b"".join(parts)


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


def _write_metadata_request(message: MetadataRequest) -> bytes:
    parts = [_NO_TAGS if message.topics is None else _prefix(len(message.topics) + 1)]
    for topic in message.topics or ():
        parts += (topic.topic_id.bytes, _nullable_text(topic.name), _NO_TAGS)
    parts += (
        b"\1" if message.allow_auto_topic_creation else b"\0",
        b"\1" if message.include_topic_authorized_operations else b"\0",
        _NO_TAGS,
    )
    return b"".join(parts)


def _write_metadata_response(message: MetadataResponse) -> bytes:
    parts = [_I.pack(message.throttle_time_ms), _prefix(len(message.brokers) + 1)]
    for broker in message.brokers:
        parts += (
            _I.pack(broker.node_id),
            _text(broker.host),
            _I.pack(broker.port),
            _nullable_text(broker.rack),
            _NO_TAGS,
        )
    parts += (
        _nullable_text(message.cluster_id),
        _I.pack(message.controller_id),
        _prefix(len(message.topics) + 1),
    )
    for topic in message.topics:
        parts += (
            _H.pack(topic.error_code),
            _nullable_text(topic.name),
            topic.topic_id.bytes,
            b"\1" if topic.is_internal else b"\0",
            _prefix(len(topic.partitions) + 1),
        )
        for row in topic.partitions:
            parts += (
                _HIII.pack(row.error_code, row.partition_index, row.leader_id, row.leader_epoch),
                _numbers(row.replica_nodes),
                _numbers(row.isr_nodes),
                _numbers(row.offline_replicas),
                _NO_TAGS,
            )
        parts += (_I.pack(topic.topic_authorized_operations), _NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _write_sync_group_request(message: SyncGroupRequest) -> bytes:
    parts = [
        _text(message.group_id),
        _I.pack(message.generation_id),
        _text(message.member_id),
        _nullable_text(message.group_instance_id),
        _nullable_text(message.protocol_type),
        _nullable_text(message.protocol_name),
        _prefix(len(message.assignments) + 1),
    ]
    for each in message.assignments:
        parts += (_text(each.member_id), _raw(each.assignment), _NO_TAGS)
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


def _write_fetch_response(message: FetchResponse) -> bytes:
    parts = [
        _IHI.pack(message.throttle_time_ms, message.error_code, message.session_id),
        _prefix(len(message.responses) + 1),
    ]
    for topic in message.responses:
        parts += (_text(topic.topic), _prefix(len(topic.partitions) + 1))
        for row in topic.partitions:
            parts.append(
                _IHQQQ.pack(
                    row.partition_index,
                    row.error_code,
                    row.high_watermark,
                    row.last_stable_offset,
                    row.log_start_offset,
                )
            )
            parts.append(_NO_TAGS if row.aborted_transactions is None else _prefix(len(row.aborted_transactions) + 1))
            for each in row.aborted_transactions or ():
                parts += (_QQ.pack(each.producer_id, each.first_offset), _NO_TAGS)
            records = _NO_TAGS if row.records is None else _raw(row.records)
            parts += (_I.pack(row.preferred_read_replica), records, _partition_tags(row))
        parts.append(_NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _partition_tags(row: PartitionData) -> bytes:
    tags = []
    if row.diverging_epoch != _NO_EPOCH:
        tags.append(b"\0\x0d" + _IQ.pack(row.diverging_epoch.epoch, row.diverging_epoch.end_offset) + _NO_TAGS)
    if row.current_leader != _NO_LEADER:
        tags.append(b"\1\x09" + _II.pack(row.current_leader.leader_id, row.current_leader.leader_epoch) + _NO_TAGS)
    if row.snapshot_id != _NO_SNAPSHOT:
        tags.append(b"\2\x0d" + _QI.pack(row.snapshot_id.end_offset, row.snapshot_id.epoch) + _NO_TAGS)
    return _prefix(len(tags)) + b"".join(tags) if tags else _NO_TAGS


BY_HAND: dict[type, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    JoinGroupRequest: (_read_join_group_request, _write_join_group_request),
    JoinGroupResponse: (_read_join_group_response, _write_join_group_response),
    MetadataRequest: (_read_metadata_request, _write_metadata_request),
    MetadataResponse: (_read_metadata_response, _write_metadata_response),
    SyncGroupRequest: (_read_sync_group_request, _write_sync_group_request),
    HeartbeatRequest: (_read_heartbeat_request, _write_heartbeat_request),
    OffsetCommitRequest: (_read_offset_commit_request, _write_offset_commit_request),
    FetchResponse: (_read_fetch_response, _write_fetch_response),
}
"""How to read and how to write each sample's class, in the version it is measured in."""
