"""The records of a group in `__consumer_offsets` (Kafka's `GroupCoordinatorRecordHelpers`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

from .coordinator_records import CoordinatorRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .classic.group import ClassicGroup, CommittedOffset


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of a group: its members, their metadata for the selected protocol, and these assignments."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_changed_at,
        members=tuple(
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments.get(member.id, b""),
            )
            for member in group.members.values()
        ),
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.id), value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the first record of a new group: Empty, generation 0, no protocol type."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_changed_at
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.id), value)


def group_tombstone(group: ClassicGroup) -> CoordinatorRecord:
    """Return the tombstone of a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group.id), None)


def offset_record(group: ClassicGroup, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    """Return the record of one committed offset."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
        topic_id=committed.topic_id,
    )
    return CoordinatorRecord(OffsetCommitKey(group=group.id, topic=topic, partition=partition), value)


def offset_tombstone(group: ClassicGroup, topic: str, partition: int) -> CoordinatorRecord:
    """Return the tombstone of one committed offset."""
    return CoordinatorRecord(OffsetCommitKey(group=group.id, topic=topic, partition=partition), None)
