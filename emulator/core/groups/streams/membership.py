"""Membership of streams groups: identification, fencing, removals.

Kafka: `GroupMetadataManager.getOrMaybeCreateDynamicStreamsGroupMember`, `streamsGroupFenceMember`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

from ...refusal import refused
from ..causes import Cause, Reason
from ..modern import membership as modern
from ..modern.changes import write
from ..modern.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH, UNCHANGED
from ..modern.membership import check_member, fenced, full_group, successor, unreleased, updated
from .member import StreamsMember
from .records import RECORD_TYPES, current_record, member_record, target_record
from .tasks import NO_TASKS, ReportedOffsets, Task, Tasks, tasks_of

if TYPE_CHECKING:
    from koordinator.wire.messages import streams_group_heartbeat as wire

    from ...effects import Call
    from ..group_store import GroupStore
    from ..modern.changes import Answer
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
    if owner is not None and owner.id != request.member_id:
        group.relabel(owner.id, request.member_id)
    if joins and owner is not None:
        if not owner.has_left():
            raise unreleased(owner, request.member_id, instance_id)
        return successor(owner, request.member_id), owner
    if not joins:
        check_member(group, request.member_id, instance_id)
    member = group.members.get(request.member_id)
    if member is None:
        return StreamsMember(request.member_id, instance_id, previous_epoch=0), None
    if not joins:
        _check_epoch(group, member, request)
    return member, None


def _check_capacity(store: GroupStore, group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest) -> None:
    limit = store.settings.group_streams_max_size
    is_known = request.instance_id in group.static_members or request.member_id in group.members
    if len(group.members) >= limit and not (is_known and store.dialect.full_streams_group_takes_its_members):
        raise full_group(group, limit)


def _check_epoch(group: StreamsGroup, member: StreamsMember, request: wire.StreamsGroupHeartbeatRequest) -> None:
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
    raise fenced(group, member, epoch)


def with_heartbeat(
    store: GroupStore, member: StreamsMember, call: Call, request: wire.StreamsGroupHeartbeatRequest
) -> StreamsMember:
    """Return the member with the fields that the request gives, the same object if nothing changes; null keeps one."""
    timeout_ms, topology, tags = request.rebalance_timeout_ms, request.topology, request.client_tags
    joins, dialect = request.member_epoch == JOINING_EPOCH, store.dialect
    if joins and request.user_endpoint is None and member.endpoint and dialect.endpoint_change_raises_its_epoch:
        member = replace(member, endpoint=None)
    return updated(
        member,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=None if timeout_ms == UNCHANGED else timeout_ms,
        topology_epoch=None if topology is None else topology.epoch,
        process_id=request.process_id,
        endpoint=request.user_endpoint,
        tags=None if tags is None else {each.key: each.value for each in tags},
    )


def takeover(group: StreamsGroup, replaced: StreamsMember, successor: StreamsMember) -> list[CoordinatorRecord]:
    """Return the records by which a static member takes the place of another, before its heartbeat counts."""
    return [
        *RECORD_TYPES.member_tombstones(group.id, [replaced.id]),
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


def remove(store: GroupStore, group: StreamsGroup, member_id: str, why: Reason, answer: Answer = None) -> None:
    """Remove a member and raise the group epoch; the next heartbeat of any member computes the target."""
    epoch = group.next_unseeing_epoch(store.cluster.topics.version)
    modern.remove(store, group, [member_id], epoch, [group.epoch_record(epoch)], why=why, answer=answer)
