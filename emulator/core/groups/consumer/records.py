"""The records of consumer groups. Kafka: `GroupCoordinatorRecordHelpers`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_records as wire

from ..modern.records import RecordTypes
from ..records import CoordinatorRecord
from .member import ConsumerMember, MemberState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from .assignment import Target


def group_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch."""
    value = wire.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(wire.ConsumerGroupMetadataKey(group=group_id), value)


def topics_record(group_id: str, topics: tuple[wire.TopicMetadata, ...] | None) -> CoordinatorRecord:
    """Return the record of the topics that a group has seen, up to 4.0; a tombstone for None."""
    value = None if topics is None else wire.ConsumerGroupPartitionMetadataValue(topics=topics)
    return CoordinatorRecord(wire.ConsumerGroupPartitionMetadataKey(group=group_id), value)


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of a member's subscription."""
    value = wire.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.names,
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=member.classic,
    )
    return CoordinatorRecord(wire.ConsumerGroupMemberMetadataKey(group=group_id, member_id=member.id), value)


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    """Return the record of a member's target."""
    rows = tuple(wire.TargetPartitions(topic_id=topic, partitions=partitions) for topic, partitions in target.items())
    key = wire.ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id)
    return CoordinatorRecord(key, wire.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=rows))


def current_record(group_id: str, member: ConsumerMember, *, with_epochs: bool) -> CoordinatorRecord:
    """Return the record of a member's epochs and partitions; since 4.3 `with_epochs` of the partitions."""

    def rows(partitions: Mapping[UUID, dict[int, int]]) -> tuple[wire.CurrentPartitions, ...]:
        return tuple(
            wire.CurrentPartitions(
                topic_id=topic,
                partitions=tuple(epochs),
                assignment_epochs=tuple(epochs.values()) if with_epochs else None,
            )
            for topic, epochs in partitions.items()
        )

    value = wire.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=rows(member.assigned),
        partitions_pending_revocation=rows(member.pending),
    )
    return CoordinatorRecord(wire.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.id), value)


def pattern_record(
    group_id: str, pattern: str, resolved: wire.ConsumerGroupRegularExpressionValue | None
) -> CoordinatorRecord:
    """Return the record of a regular expression; a tombstone for None."""
    key = wire.ConsumerGroupRegularExpressionKey(group=group_id, regular_expression=pattern)
    return CoordinatorRecord(key, resolved)


def group_tombstones(group_id: str, patterns: Iterable[str]) -> list[CoordinatorRecord]:
    """Return the tombstones of an empty group; older logs may have the record of its topics."""
    target_epoch, *others = RECORD_TYPES.group_tombstones(group_id)
    return [target_epoch, *(pattern_record(group_id, pattern, None) for pattern in patterns), *others]


def _subscribed(member: ConsumerMember, value: wire.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        names=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def _reconciled(member: ConsumerMember, value: wire.ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    def epochs(rows: Iterable[wire.CurrentPartitions]) -> dict[UUID, dict[int, int]]:
        # an older log lacks the epochs
        unknown = max(value.member_epoch, 0)
        return {
            row.topic_id: dict(
                zip(row.partitions, row.assignment_epochs or (unknown,) * len(row.partitions), strict=True)
            )
            for row in rows
        }

    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=epochs(value.assigned_partitions),
        pending=epochs(value.partitions_pending_revocation),
    )


RECORD_TYPES = RecordTypes(
    group=wire.ConsumerGroupMetadataKey,
    target_epoch=wire.ConsumerGroupTargetAssignmentMetadataKey,
    target_epoch_value=wire.ConsumerGroupTargetAssignmentMetadataValue,
    member=wire.ConsumerGroupMemberMetadataKey,
    target=wire.ConsumerGroupTargetAssignmentMemberKey,
    current=wire.ConsumerGroupCurrentMemberAssignmentKey,
    further=(wire.ConsumerGroupPartitionMetadataKey, wire.ConsumerGroupRegularExpressionKey),
    of_group=(
        wire.ConsumerGroupTargetAssignmentMetadataKey,
        wire.ConsumerGroupPartitionMetadataKey,
        wire.ConsumerGroupMetadataKey,
    ),
    new_member=ConsumerMember,
    described=_subscribed,
    reconciled=_reconciled,
    target_of=lambda value: {row.topic_id: tuple(row.partitions) for row in value.topic_partitions},
)
