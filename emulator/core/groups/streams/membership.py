"""Membership of streams groups: identification, fencing, removals.

Kafka: `GroupMetadataManager.getOrMaybeCreateDynamicStreamsGroupMember`, `streamsGroupFenceMember`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

from ..causes import Cause, Reason
from ..modern.member import JOINING_EPOCH
from .changes import member_timers, write
from .checks import UNCHANGED_TIMEOUT, refused
from .member import STATIC_LEAVING_EPOCH, StreamsMember
from .records import (
    current_record,
    group_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
)
from .tasks import NO_TASKS, ReportedOffsets, Task, Tasks, tasks_of

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.messages import streams_group_heartbeat as wire

    from ...effects import Call
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import StreamsGroup


def owned_tasks(request: wire.StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return the tasks that a member reports as its own; None if it reports none."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(tasks_of(active), tasks_of(standby), tasks_of(warmup))


def reported_offsets(group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest) -> ReportedOffsets:
    """Return the offsets of a member's tasks with what it reports; null leaves them as they are.

    Raises RefusedError with INVALID_REQUEST for a task that is there twice.
    """
    known = group.soft.task_offsets.get(request.member_id, ReportedOffsets())
    given, ends = request.task_offsets, request.task_end_offsets
    return ReportedOffsets(
        known.offsets if given is None else _offsets_of(given), known.end_offsets if ends is None else _offsets_of(ends)
    )


def _offsets_of(rows: tuple[wire.TaskOffset, ...]) -> dict[Task, int]:
    found: dict[Task, int] = {}
    for row in rows:
        task = Task(row.subtopology_id, row.partition)
        if task in found:
            at = f"subtopology {row.subtopology_id} and partition {row.partition}"
            text = f"Task offsets contain a duplicate entry for {at}."
            raise refused(Error.INVALID_REQUEST, text)
        found[task] = row.offset
    return found


def identify(
    store: GroupStore, group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest
) -> tuple[StreamsMember, StreamsMember | None]:
    """Return the member of a heartbeat, and the static member that it replaces, if any.

    Raises RefusedError with GROUP_MAX_SIZE_REACHED, before 4.4 also for a member of a full group that rejoins,
    UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH or UNRELEASED_INSTANCE_ID.
    """
    joins, instance_id = request.member_epoch == JOINING_EPOCH, request.instance_id
    if joins:
        _check_capacity(store, group, request)
    owner = None if instance_id is None else group.members.get(group.static_members.get(instance_id, ""))
    if joins and owner is not None:
        if not owner.has_left():
            text = (
                f"Static member {request.member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {owner.id} member."
            )
            raise refused(Error.UNRELEASED_INSTANCE_ID, text)
        return replace(owner, id=request.member_id, epoch=0, previous_epoch=0), owner
    if not joins:
        check_member(group, request)
    member = group.members.get(request.member_id)
    if member is None:
        return StreamsMember(request.member_id, instance_id, previous_epoch=0), None
    if not joins:
        _check_epoch(member, request)
    return member, None


def _check_capacity(store: GroupStore, group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest) -> None:
    limit = store.settings.group_streams_max_size
    is_known = request.instance_id in group.static_members or request.member_id in group.members
    if len(group.members) >= limit and not (is_known and store.dialect.full_streams_group_takes_its_members):
        text = f"The streams group has reached its maximum capacity of {limit} members."
        raise refused(Error.GROUP_MAX_SIZE_REACHED, text)


def check_member(group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest) -> None:
    """Raise RefusedError unless the member is in the group, and has the instance id.

    The error is UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id.
    """
    member_id, instance_id = request.member_id, request.instance_id
    if instance_id is None:
        if member_id not in group.members:
            text = f"Member {member_id} is not a member of group {group.id}."
            raise refused(Error.UNKNOWN_MEMBER_ID, text)
        return
    owner_id = group.static_members.get(instance_id)
    if owner_id is None:
        raise refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner_id != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner_id}."
        raise refused(Error.FENCED_INSTANCE_ID, text)


def _check_epoch(member: StreamsMember, request: wire.StreamsGroupHeartbeatRequest) -> None:
    """Raise RefusedError with FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The previous epoch passes as well if the member owns nothing beyond its assignment: the answer was lost.
    """
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch < member.epoch and epoch == member.previous_epoch:
        owned = owned_tasks(request)
        if owned is not None and not owned - member.assigned:
            return
    relation = "greater" if epoch > member.epoch else "smaller"
    text = (
        f"The streams group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise refused(Error.FENCED_MEMBER_EPOCH, text)


def updated(
    store: GroupStore, member: StreamsMember, call: Call, request: wire.StreamsGroupHeartbeatRequest
) -> StreamsMember:
    """Return the member with the fields that the request gives, the same object if nothing changes; null keeps one."""
    timeout_ms, topology, tags = request.rebalance_timeout_ms, request.topology, request.client_tags
    fields: dict[str, Any] = {
        "rack_id": request.rack_id,
        "client_id": call.client_id,
        "client_host": call.client_host,
        "rebalance_timeout_ms": None if timeout_ms == UNCHANGED_TIMEOUT else timeout_ms,
        "topology_epoch": None if topology is None else topology.epoch,
        "process_id": request.process_id,
        "endpoint": request.user_endpoint,
        "tags": None if tags is None else {each.key: each.value for each in tags},
    }
    changed = {name: value for name, value in fields.items() if value is not None and getattr(member, name) != value}
    joins = request.member_epoch == JOINING_EPOCH
    if joins and request.user_endpoint is None and member.endpoint and store.dialect.endpoint_change_raises_its_epoch:
        changed["endpoint"] = None
    # most heartbeats change nothing
    return replace(member, **changed) if changed else member


def takeover(group: StreamsGroup, replaced: StreamsMember, successor: StreamsMember) -> list[CoordinatorRecord]:
    """Return the records by which a static member takes the place of another, before its heartbeat counts."""
    return [
        *member_tombstones(group.id, replaced.id),
        member_record(group.id, successor),
        target_record(group.id, successor.id, group.targets.get(replaced.id, NO_TASKS)),
        current_record(group.id, successor),
    ]


def leave_for_a_while(
    store: GroupStore, group: StreamsGroup, call: Call, request: wire.StreamsGroupHeartbeatRequest
) -> None:
    """Let a static member go, with its tasks, until it returns or its session ends."""
    member = group.members[request.member_id]
    since = dict.fromkeys(member.assigned.active, 0)
    away = replace(member, epoch=STATIC_LEAVING_EPOCH, pending=NO_TASKS, active_since=since)
    why = Reason(Cause.MEMBER_LEAVE, f"Static member {member.id} temporarily left the streams group.", member.id)
    response = StreamsGroupHeartbeatResponse(member_id=member.id, member_epoch=STATIC_LEAVING_EPOCH)
    write(store, group, [current_record(group.id, away)], why, (call, response))


def remove(
    store: GroupStore,
    group: StreamsGroup,
    member_id: str,
    why: Reason,
    answer: tuple[Call, Message] | None = None,
) -> None:
    """Remove a member and raise the group epoch; the next heartbeat of any member computes the target."""
    epoch = group.next_unseeing_epoch(store.cluster.topics_version)
    records: list[CoordinatorRecord] = [
        *member_tombstones(group.id, member_id),
        group_record(group.id, epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs),
    ]
    if store.dialect.emptied_group_gets_target and len(group.members) == 1:
        records.append(target_epoch_record(group.id, epoch, 0))
    write(store, group, records, why, answer)
    for key in member_timers(member_id):
        group.timers.cancel(key)
