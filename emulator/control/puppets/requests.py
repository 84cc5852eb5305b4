"""Requests of puppets, from their current state; fields that the version lacks stay at their default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .classic_puppet import ClassicPuppet
    from .puppet import PuppetClient

JOIN_REASON_SINCE, LEAVE_REASON_SINCE = 8, 5
"""The first versions with a reason (KIP-800)."""

PROTOCOL_SINCE = 5
"""The first version of SyncGroup with the protocol name (KIP-559)."""


def join_group(puppet: ClassicPuppet, reason: str | None, version: int) -> JoinGroupRequest:
    """Return a JoinGroup with the protocols that the role offers."""
    return JoinGroupRequest(
        group_id=puppet.group_id,
        session_timeout_ms=puppet.session_timeout_ms,
        rebalance_timeout_ms=puppet.rebalance_timeout_ms,
        member_id=puppet.member_id,
        group_instance_id=puppet.instance_id,
        protocol_type=puppet.role.protocol_type,
        protocols=tuple(
            JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in puppet.role.offers()
        ),
        reason=reason if version >= JOIN_REASON_SINCE else None,
    )


def sync_group(puppet: ClassicPuppet, assigned: Mapping[str, bytes], version: int) -> SyncGroupRequest:
    """Return a SyncGroup; `assigned` holds the leader's assignments by member id."""
    has_protocol = version >= PROTOCOL_SINCE
    return SyncGroupRequest(
        group_id=puppet.group_id,
        generation_id=puppet.generation,
        member_id=puppet.member_id,
        group_instance_id=puppet.instance_id,
        protocol_type=puppet.role.protocol_type if has_protocol else None,
        protocol_name=puppet.protocol if has_protocol else None,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assigned.items()
        ),
    )


def heartbeat(puppet: ClassicPuppet) -> HeartbeatRequest:
    """Return a heartbeat of the current generation."""
    return HeartbeatRequest(
        group_id=puppet.group_id,
        generation_id=puppet.generation,
        member_id=puppet.member_id,
        group_instance_id=puppet.instance_id,
    )


def leave_group(puppet: ClassicPuppet, reason: str | None, version: int) -> LeaveGroupRequest:
    """Return a LeaveGroup."""
    identity = MemberIdentity(
        member_id=puppet.member_id,
        group_instance_id=puppet.instance_id,
        reason=reason if version >= LEAVE_REASON_SINCE else None,
    )
    return LeaveGroupRequest(group_id=puppet.group_id, members=(identity,))


def offset_commit(puppet: PuppetClient, offsets: Mapping[tuple[str, int], int]) -> OffsetCommitRequest:
    """Return an OffsetCommit of offsets by topic and partition."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        row = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
        by_topic.setdefault(topic, []).append(row)
    return OffsetCommitRequest(
        group_id=puppet.group_id,
        generation_id_or_member_epoch=puppet.generation,
        member_id=puppet.member_id,
        group_instance_id=puppet.instance_id,
        topics=tuple(OffsetCommitRequestTopic(name=topic, partitions=tuple(rows)) for topic, rows in by_topic.items()),
    )
