"""The records of streams groups. Kafka: `StreamsCoordinatorRecordHelpers`."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from koordinator.wire.messages import streams_group_records as wire
from koordinator.wire.messages.streams_group_heartbeat import KeyValue

from ..modern.records import RecordTypes
from ..records import CoordinatorRecord
from .member import StreamsMember, StreamsMemberState
from .tasks import Task, Tasks, rows_of, tasks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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


def _described(member: StreamsMember, value: wire.StreamsGroupMemberMetadataValue) -> StreamsMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=value.user_endpoint,
        tags={each.key: each.value for each in value.client_tags},
    )


def _reconciled(member: StreamsMember, value: wire.StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=StreamsMemberState(value.state),
        assigned=Tasks(tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)),
        pending=Tasks(
            tasks_of(value.active_tasks_pending_revocation),
            tasks_of(value.standby_tasks_pending_revocation),
            tasks_of(value.warmup_tasks_pending_revocation),
        ),
        active_since=_since((*value.active_tasks, *value.active_tasks_pending_revocation), value.member_epoch),
    )


def _since(rows: Iterable[wire.CurrentTaskIds], unknown: int) -> dict[Task, int]:
    """Return the epoch of each active task; an older log lacks them, or has another number of them."""
    found: dict[Task, int] = {}
    for row in rows:
        epochs = row.assignment_epochs or ()
        if len(epochs) != len(row.partitions):
            epochs = (unknown,) * len(row.partitions)
        for partition, epoch in zip(row.partitions, epochs, strict=True):
            found[Task(row.subtopology_id, partition)] = epoch
    return found


RECORD_TYPES = RecordTypes(
    group=wire.StreamsGroupMetadataKey,
    target_epoch=wire.StreamsGroupTargetAssignmentMetadataKey,
    target_epoch_value=wire.StreamsGroupTargetAssignmentMetadataValue,
    member=wire.StreamsGroupMemberMetadataKey,
    target=wire.StreamsGroupTargetAssignmentMemberKey,
    current=wire.StreamsGroupCurrentMemberAssignmentKey,
    further=(wire.StreamsGroupTopologyKey,),
    of_group=(
        wire.StreamsGroupTargetAssignmentMetadataKey,
        wire.StreamsGroupMetadataKey,
        wire.StreamsGroupTopologyKey,
    ),
    new_member=StreamsMember,
    described=_described,
    reconciled=_reconciled,
    target_of=lambda value: Tasks(
        tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
    ),
)
