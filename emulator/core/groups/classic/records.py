"""The records of a classic group. Kafka: `GroupCoordinatorRecordHelpers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import GroupMetadataKey, GroupMetadataValue, MemberMetadata

from ..records import CoordinatorRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .group import ClassicGroup


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of a group: its members, their metadata for the selected protocol, and these assignments."""
    metadata = GroupMetadataValue(
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
    return CoordinatorRecord(GroupMetadataKey(group=group.id), metadata)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the first record of a new group: Empty, generation 0, no protocol type."""
    metadata = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_changed_at
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.id), metadata)


def group_tombstone(group: ClassicGroup) -> CoordinatorRecord:
    """Return the tombstone of a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group.id), None)
