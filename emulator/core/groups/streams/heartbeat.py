"""StreamsGroupHeartbeat of a member that joins or stays: its answer, and the timers of the group (KIP-1071).

An error leaves everything as it was. Kafka: `GroupMetadataManager.streamsGroupHeartbeat`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages import streams_group_heartbeat as wire

from ...java.hash_tables import HashTable
from ...timers import RevocationTimeout, SessionExpiry, StreamsInitialDelay
from ..causes import Cause, Reason
from ..modern.changes import restart_session, write
from ..modern.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from ..modern.membership import RETRY_MS, check_member
from ..modern.steps import is_too_early, set_revocation_timeout
from .group import SoftState
from .internal_topics import creation, forbidden, told
from .membership import identify, leave_for_a_while, remove, with_heartbeat
from .progress import MISSING_CLIENT_TAGS, SHUTDOWN_APPLICATION, StreamsUpdate, advance
from .queries import partitions_by_endpoint
from .settings import StreamsSettings
from .target import compute_target, target_records
from .tasks import ReportedOffsets, rows_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...effects import Call
    from ...timers import TimerKey
    from ..group_store import GroupStore
    from .group import StreamsGroup
    from .member import StreamsMember
    from .progress import StreamsProgress
    from .tasks import Task

TAGS_SINCE = 1
"""The first version of StreamsGroupHeartbeat whose clients know the status of missing tags."""


def beat(
    store: GroupStore,
    group: StreamsGroup,
    call: Call,
    request: wire.StreamsGroupHeartbeatRequest,
    *,
    is_new_group: bool,
) -> None:
    """Serve a heartbeat of a member that joins or stays. Raises RefusedError.

    The soft state of a new group is lost: Kafka creates the group when it replays the records.
    """
    before, replaced = identify(store, group, request)
    after = with_heartbeat(store, before, call, request)
    progress = advance(store, group, request, StreamsUpdate(before, after, replaced))
    if progress.records and store.hold_if_frozen(group, call, request):
        return
    member, missing = progress.member, progress.configured.missing
    not_allowed = forbidden(store, call, [topic.name for topic in missing])
    soft = SoftState() if is_new_group else group.soft
    soft.shutdown_by = soft.shutdown_by or (member.id if request.shutdown_application else None)
    if progress.offsets != ReportedOffsets():
        soft.task_offsets[member.id] = progress.offsets
    has_tasks = request.member_epoch == JOINING_EPOCH or member.assigned != before.assigned
    raises_endpoint_epoch = _raises_endpoint_epoch(store, before, member, has_tasks=has_tasks)
    soft.endpoint_epoch += raises_endpoint_epoch
    if progress.configured is not group.configured:
        soft.endpoint_rows.clear()
    elif has_tasks or raises_endpoint_epoch:
        soft.endpoint_rows.pop(member.id, None)
    by_endpoint = None
    if soft.endpoint_epoch != request.endpoint_information_epoch:
        by_endpoint = partitions_by_endpoint(store, group, soft.endpoint_rows, member, replaced, progress.configured)
    dialect = store.dialect
    response = wire.StreamsGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=group.setting(store.cluster, "heartbeat.interval.ms"),
        task_offset_interval_ms=dialect.streams_task_offset_interval_ms,
        acceptable_recovery_lag=dialect.streams_acceptable_recovery_lag,
        status=(*_status(group, progress, soft, not_allowed), *_missing_tags(store, group, call, member)),
        active_tasks=_rows(member.assigned.active) if has_tasks else None,
        standby_tasks=_rows(member.assigned.standby) if has_tasks else None,
        warmup_tasks=_rows(member.assigned.warmup) if has_tasks else None,
        # Kafka asks for a group of this id: it may be the Empty classic one that this one replaces
        endpoint_information_epoch=0 if is_new_group and group.origin is None else soft.endpoint_epoch,
        partitions_by_user_endpoint=by_endpoint,
    )
    unrecorded = None if is_new_group else {"configured": progress.configured, "refined": progress.refined}
    why = _reason(group, before, after, replaced)
    created = creation(missing) if missing and not not_allowed else None
    write(store, group, progress.records, why, (call, response), created, unrecorded=unrecorded)
    if member is not after:
        set_revocation_timeout(group, member)
    restart_session(store, group, member.id, call)


def _raises_endpoint_epoch(store: GroupStore, before: StreamsMember, member: StreamsMember, *, has_tasks: bool) -> bool:
    """Return whether a heartbeat changes the partitions at an endpoint."""
    if store.dialect.endpoint_change_raises_its_epoch:
        if member.endpoint != before.endpoint:
            return True
        has_tasks = member.assigned != before.assigned
    return has_tasks and member.endpoint is not None


def _status(
    group: StreamsGroup, progress: StreamsProgress, soft: SoftState, not_allowed: Collection[str]
) -> tuple[wire.Status, ...]:
    """Return what a member has to know: stale topology, delays, missing and wrong topics, shutdown."""
    status, problem = list(progress.status), progress.configured.problem
    if problem is not None:
        known = wire.Status(status_code=problem.status, status_detail=problem.detail)
        status.append(told(known, group, progress.configured.missing, not_allowed))
    if soft.shutdown_by is not None:
        text = (
            f"Streams group member {soft.shutdown_by} encountered a fatal error and requested a shutdown for the "
            "entire application."
        )
        status.append(wire.Status(status_code=SHUTDOWN_APPLICATION, status_detail=text))
    return tuple(status)


def _missing_tags(store: GroupStore, group: StreamsGroup, call: Call, member: StreamsMember) -> tuple[wire.Status, ...]:
    """Return the status of a member without all tags that its group needs; clients know it since v1."""
    tags = StreamsSettings(store.cluster, group.id).rack_aware_assignment_tags
    missing = ", ".join(tag for tag in tags if tag not in member.tags)
    if not missing or call.api_version < TAGS_SINCE:
        return ()
    text = (
        f"Missing required client tags for rack-aware standby assignment: [{missing}]. Configure them via "
        "'client.tag.<tagKey>' in your Streams config."
    )
    return (wire.Status(status_code=MISSING_CLIENT_TAGS, status_detail=text),)


def _rows(tasks: Collection[Task]) -> tuple[wire.TaskIds, ...]:
    """Return tasks in the order of Kafka's table."""
    rows = {row.subtopology_id: row for row in rows_of(tasks)}
    return tuple(rows[name] for name in HashTable(rows))


def _reason(group: StreamsGroup, before: StreamsMember, after: StreamsMember, replaced: StreamsMember | None) -> Reason:
    if replaced is not None or after.id not in group.members:
        return Reason(Cause.MEMBER_JOIN, f"Member {after.id} joined the streams group.", after.id)
    if after is not before:
        return Reason(Cause.METADATA_CHANGE, f"Member {after.id} updated its member metadata.", after.id)
    return Reason(Cause.TOPIC_CHANGE, f"A topic of streams group {group.id} has changed.")


def leave(store: GroupStore, group: StreamsGroup, call: Call, request: wire.StreamsGroupHeartbeatRequest) -> None:
    """Remove a member, or let a static one leave for a while.

    Raises RefusedError with UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    member_id = request.member_id
    if request.shutdown_application:
        group.soft.shutdown_by = group.soft.shutdown_by or member_id
    check_member(group, member_id, request.instance_id)
    if request.member_epoch == STATIC_LEAVING_EPOCH:
        return leave_for_a_while(store, group, call, request)
    why = Reason(Cause.MEMBER_LEAVE, f"Member {member_id} left the streams group.", member_id)
    response = wire.StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
    return remove(store, group, member_id, why, (call, response))


def fire(store: GroupStore, group: StreamsGroup, key: TimerKey) -> None:
    """Act on a timer: remove a member that is silent or does not revoke, or compute the first target."""
    match key:
        case StreamsInitialDelay():
            _compute_delayed_target(store, group)
        case SessionExpiry(member_id=member_id):
            # the session of a static member that was replaced finds no member, as in Kafka
            if member_id in group.members:
                text = f"Member {member_id} fenced from the group because its session expired."
                _fence(store, group, key, Reason(Cause.SESSION_EXPIRED, text, member_id))
        case RevocationTimeout(member_id=member_id):
            member = group.members.get(member_id)
            if member is not None and member.is_revoking and not member.has_left():
                text = (
                    f"Member {member_id} fenced from the group because it failed to transition from epoch "
                    f"{member.epoch} within {member.rebalance_timeout_ms}ms."
                )
                _fence(store, group, key, Reason(Cause.REVOCATION_TIMEOUT, text, member_id))
        case _:
            raise AssertionError(f"{key} is no timer of a streams group")


def _fence(store: GroupStore, group: StreamsGroup, key: SessionExpiry | RevocationTimeout, why: Reason) -> None:
    # counts if the removal cannot be written
    group.timers.set(key, group.now + RETRY_MS)
    remove(store, group, key.member_id, why)


def _compute_delayed_target(store: GroupStore, group: StreamsGroup) -> None:
    """Compute the target of an empty group's first members, unless the group knows nothing of its topics yet.

    Then the next heartbeat does it. Kafka: `GroupMetadataManager.computeDelayedTargetAssignment`.
    """
    if not group.members or group.configured is None or group.target_epoch >= group.epoch:
        return
    if is_too_early(store, group):
        return
    targets = compute_target(store, group, None, group.configured, group.assignment_configs)
    text = "The initial rebalance delay of the streams group is over."
    write(store, group, target_records(store, group, group.targets, targets, group.epoch), Reason(Cause.ASSIGNED, text))
