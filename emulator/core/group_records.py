"""The group's records in `__consumer_offsets`: what Kafka's `GroupCoordinatorRecordHelpers` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.core.records import Record
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.emulator.core.group import CommittedOffset, Group


def group_record(group: Group, assignments: Mapping[str, bytes]) -> Record:
    """The group with its members, the selected protocol's metadata and these assignments."""
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
    return Record(GroupMetadataKey(group=group.id), value)


def new_group_record(group: Group) -> Record:
    """A group that somebody has asked to join: as it was before, empty and without a protocol type."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_changed_at
    )
    return Record(GroupMetadataKey(group=group.id), value)


def group_tombstone(group: Group) -> Record:
    """The group is gone."""
    return Record(GroupMetadataKey(group=group.id), None)


def offset_record(group: Group, topic: str, partition: int, committed: CommittedOffset) -> Record:
    """One committed offset."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
        topic_id=committed.topic_id,
    )
    return Record(OffsetCommitKey(group=group.id, topic=topic, partition=partition), value)


def offset_tombstone(group: Group, topic: str, partition: int) -> Record:
    """A committed offset is gone."""
    return Record(OffsetCommitKey(group=group.id, topic=topic, partition=partition), None)
