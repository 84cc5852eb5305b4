"""The records of share groups. Kafka: `GroupCoordinatorRecordHelpers`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages import share_group_records as wire

from ..modern.records import RecordTypes
from ..records import CoordinatorRecord
from .member import ShareMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from .group import StatePartitions
    from .member import Partitions


def group_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch."""
    value = wire.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(wire.ShareGroupMetadataKey(group=group_id), value)


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Return the record of a member's subscription."""
    value = wire.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.names,
    )
    return CoordinatorRecord(wire.ShareGroupMemberMetadataKey(group=group_id, member_id=member.id), value)


def target_record(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """Return the record of a member's target."""
    rows = tuple(wire.TopicPartition(topic_id=topic, partitions=partitions) for topic, partitions in target.items())
    key = wire.ShareGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id)
    return CoordinatorRecord(key, wire.ShareGroupTargetAssignmentMemberValue(topic_partitions=rows))


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Return the record of a member's epochs and partitions."""
    value = wire.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        assigned_partitions=tuple(
            wire.TopicPartitions(topic_id=topic, partitions=partitions) for topic, partitions in member.assigned.items()
        ),
    )
    return CoordinatorRecord(wire.ShareGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.id), value)


def state_partitions_record(group_id: str, state: StatePartitions) -> CoordinatorRecord:
    """Return the record of the partitions whose state the share coordinator has, gets, or is to delete."""

    def rows(topics: Mapping[UUID, tuple[str, frozenset[int]]]) -> tuple[wire.TopicPartitionsInfo, ...]:
        return tuple(
            wire.TopicPartitionsInfo(topic_id=topic, topic_name=name, partitions=tuple(sorted(partitions)))
            for topic, (name, partitions) in topics.items()
        )

    value = wire.ShareGroupStatePartitionMetadataValue(
        initializing_topics=rows(state.initializing),
        initialized_topics=rows(state.initialized),
        deleting_topics=tuple(
            wire.TopicInfo(topic_id=topic, topic_name=name) for topic, name in state.deleting.items()
        ),
    )
    return CoordinatorRecord(wire.ShareGroupStatePartitionMetadataKey(group=group_id), value)


def _subscribed(member: ShareMember, value: wire.ShareGroupMemberMetadataValue) -> ShareMember:
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=tuple(value.subscribed_topic_names),
    )


def _reconciled(member: ShareMember, value: wire.ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=_partitions(value.assigned_partitions),
    )


def _partitions(rows: Iterable[wire.TopicPartition | wire.TopicPartitions]) -> Partitions:
    return {row.topic_id: tuple(row.partitions) for row in rows}


RECORD_TYPES = RecordTypes(
    group=wire.ShareGroupMetadataKey,
    target_epoch=wire.ShareGroupTargetAssignmentMetadataKey,
    target_epoch_value=wire.ShareGroupTargetAssignmentMetadataValue,
    member=wire.ShareGroupMemberMetadataKey,
    target=wire.ShareGroupTargetAssignmentMemberKey,
    current=wire.ShareGroupCurrentMemberAssignmentKey,
    further=(wire.ShareGroupStatePartitionMetadataKey,),
    of_group=(
        wire.ShareGroupTargetAssignmentMetadataKey,
        wire.ShareGroupStatePartitionMetadataKey,
        wire.ShareGroupMetadataKey,
    ),
    new_member=ShareMember,
    described=_subscribed,
    reconciled=_reconciled,
    target_of=lambda value: _partitions(value.topic_partitions),
)
