"""The records of streams groups. Kafka: `StreamsCoordinatorRecordHelpers`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from koordinator.wire.messages import streams_group_records as wire
from koordinator.wire.messages.streams_group_heartbeat import KeyValue

from ..records import CoordinatorRecord
from .tasks import Task, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .member import StreamsMember
    from .tasks import Tasks


def group_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """Return the record of a group's epoch, with the settings of its assignor."""
    value = wire.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=_pairs(configs),
    )
    return CoordinatorRecord(wire.StreamsGroupMetadataKey(group=group_id), value)


def topology_record(group_id: str, topology: wire.StreamsGroupTopologyValue) -> CoordinatorRecord:
    """Return the record of a group's topology."""
    return CoordinatorRecord(wire.StreamsGroupTopologyKey(group=group_id), topology)


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Return the record of a member's client and process."""
    value = wire.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.endpoint,
        client_tags=_pairs(member.tags),
    )
    return CoordinatorRecord(wire.StreamsGroupMemberMetadataKey(group=group_id, member_id=member.id), value)


def _pairs(values: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key=key, value=values[key]) for key in sorted(values))


def target_record(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    """Return the record of a member's target."""
    value = wire.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=rows_of(target.active),
        standby_tasks=rows_of(target.standby),
        warmup_tasks=rows_of(target.warmup),
    )
    return CoordinatorRecord(wire.StreamsGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, computed_at: int) -> CoordinatorRecord:
    """Return the record of the epoch of a group's target; `computed_at` is in ms."""
    value = wire.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=computed_at)
    return CoordinatorRecord(wire.StreamsGroupTargetAssignmentMetadataKey(group=group_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Return the record of a member's epochs and tasks."""
    assigned, pending, since = member.assigned, member.pending, member.active_since
    value = wire.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_current_rows(assigned.active, since),
        standby_tasks=_current_rows(assigned.standby),
        warmup_tasks=_current_rows(assigned.warmup),
        active_tasks_pending_revocation=_current_rows(pending.active, since),
        standby_tasks_pending_revocation=_current_rows(pending.standby),
        warmup_tasks_pending_revocation=_current_rows(pending.warmup),
    )
    return CoordinatorRecord(wire.StreamsGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.id), value)


def _current_rows(tasks: Iterable[Task], since: Mapping[Task, int] | None = None) -> tuple[wire.CurrentTaskIds, ...]:
    rows = []
    for subtopology_id, group in groupby(sorted(tasks), key=lambda task: task.subtopology_id):
        of_subtopology = list(group)
        rows.append(
            wire.CurrentTaskIds(
                subtopology_id=subtopology_id,
                partitions=tuple(task.partition for task in of_subtopology),
                assignment_epochs=None if since is None else tuple(since[task] for task in of_subtopology),
            )
        )
    return tuple(rows)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of a member: current assignment, target, client."""
    keys = (
        wire.StreamsGroupCurrentMemberAssignmentKey,
        wire.StreamsGroupTargetAssignmentMemberKey,
        wire.StreamsGroupMemberMetadataKey,
    )
    return [CoordinatorRecord(key(group=group_id, member_id=member_id), None) for key in keys]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of an empty group."""
    keys = (
        wire.StreamsGroupTargetAssignmentMetadataKey,
        wire.StreamsGroupMetadataKey,
        wire.StreamsGroupTopologyKey,
    )
    return [CoordinatorRecord(key(group=group_id), None) for key in keys]
