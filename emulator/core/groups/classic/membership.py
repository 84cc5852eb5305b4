"""Heartbeat, LeaveGroup, and the validation of members in every request.

KIP-345: fencing by `group.instance.id`, LeaveGroup for several members at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

from ..causes import Cause, Reason
from ..commit import answer_after_writes
from ..consumer import classic_members
from ..consumer import membership as consumer_membership
from ..consumer.group import ConsumerGroup
from . import rebalance
from .group import ClassicGroup, ClassicGroupState

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore


NONE = Error.NONE
"""Bound once: on Python 3.11 the attribute lookup takes as long as a call."""

HEARTBEAT_OK = HeartbeatResponse()
"""The response to almost every heartbeat."""


def validate_member(store: GroupStore, group: ClassicGroup, member_id: str, instance_id: str | None) -> Error:
    """Validate the member of any request but JoinGroup."""
    if instance_id not in group.static_members and not store.dialect.unknown_instance_id_is_rejected:
        instance_id = None
    return group.member_error(member_id, instance_id)


def heartbeat(store: GroupStore, now: int, call: Call, request: HeartbeatRequest) -> None:
    """Answer a heartbeat; in a join phase with REBALANCE_IN_PROGRESS, so that the member rejoins."""
    error = validate_heartbeat(store, now, call, request)
    store.reply(call, HEARTBEAT_OK if error is NONE else HeartbeatResponse(error_code=error))


def validate_heartbeat(store: GroupStore, now: int, call: Call, request: HeartbeatRequest) -> Error:
    """Return the error of a heartbeat, and restart the session of a valid member."""
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    status = store.status(request.group_id)
    if status is not NONE:
        # no member loses its membership because the coordinator is still loading
        return NONE if status is Error.COORDINATOR_LOAD_IN_PROGRESS else status
    group = store.find(now, request.group_id)
    if not isinstance(group, ClassicGroup):
        if isinstance(group, ConsumerGroup):
            return classic_members.heartbeat(store, group, call, request)
        return Error.UNKNOWN_MEMBER_ID
    error = validate_member(store, group, request.member_id, request.group_instance_id)
    if error is not NONE:
        return error
    if request.generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    member = group.members[request.member_id]
    member.last_call = call
    match group.state:
        # by far the most frequent case
        case ClassicGroupState.STABLE:
            store.restart_session(group, member)
            return NONE
        case ClassicGroupState.PREPARING_REBALANCE:
            store.restart_session(group, member)
            return Error.REBALANCE_IN_PROGRESS
        case ClassicGroupState.COMPLETING_REBALANCE if not store.dialect.heartbeat_succeeds_before_sync:
            return Error.REBALANCE_IN_PROGRESS
        case ClassicGroupState.COMPLETING_REBALANCE:
            store.restart_session(group, member)
            return NONE
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            raise AssertionError(f"{group!r} has a member {request.member_id}")


def leave_group(store: GroupStore, now: int, call: Call, request: LeaveGroupRequest) -> None:
    """Remove members by member id or instance id (KIP-345); each entry has its own result."""
    if not request.group_id:
        return store.reply(call, LeaveGroupResponse(error_code=Error.INVALID_GROUP_ID))
    status = store.status(request.group_id)
    if status is not Error.NONE:
        return store.reply(call, LeaveGroupResponse(error_code=status))
    group = store.find(now, request.group_id)
    if isinstance(group, ConsumerGroup):
        if store.hold_if_frozen(group, leave_group, call, request):
            return None
        return consumer_membership.leave_group(store, group, call, request)
    if not isinstance(group, ClassicGroup):
        rows = tuple(_row(identity, Error.UNKNOWN_MEMBER_ID) for identity in request.members)
        return store.reply(call, LeaveGroupResponse(members=rows))
    if group.state is not ClassicGroupState.PREPARING_REBALANCE and store.hold_if_frozen(
        group, leave_group, call, request
    ):
        return None
    dialect, results, left = store.dialect, list[MemberResponse](), list[MemberIdentity]()
    for identity in request.members:
        was_pending = identity.member_id in group.pending_members
        error = _remove_leaving_member(store, group, identity)
        results.append(_row(identity, error))
        if error is Error.NONE:
            left.append(identity)
            if not dialect.leave_is_evaluated_once:
                _after_leave(store, group, [identity], may_rebalance=not was_pending)
    if left and dialect.leave_is_evaluated_once:
        _after_leave(store, group, left, may_rebalance=True)
    response = LeaveGroupResponse(members=tuple(results))
    if left and group.is_empty and dialect.waits_for_log:
        return answer_after_writes(store, group, call, response)
    return store.reply(call, response)


def _after_leave(store: GroupStore, group: ClassicGroup, left: list[MemberIdentity], *, may_rebalance: bool) -> None:
    member_ids = ", ".join(identity.member_id or identity.group_instance_id or "" for identity in left)
    reason = f"explicit `LeaveGroup` request for ({member_ids}) members."
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        rebalance.complete_if_all_joined(store, group)
    elif may_rebalance and group.state is not ClassicGroupState.EMPTY:
        why = Reason(Cause.MEMBER_LEAVE, reason, left[0].member_id or None, left[0].reason)
        rebalance.prepare(store, group, why)


def _remove_leaving_member(store: GroupStore, group: ClassicGroup, identity: MemberIdentity) -> Error:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        current_id = group.static_members.get(instance_id) if instance_id is not None else None
        if current_id is None:
            return Error.UNKNOWN_MEMBER_ID
        member_id = current_id
    elif member_id in group.pending_members:
        group.remove(member_id)
        return Error.NONE
    else:
        error = validate_member(store, group, member_id, instance_id)
        if error is not Error.NONE:
            return error
    reason = f"Removing member {member_id} on LeaveGroup; client reason: {identity.reason or 'not provided'}"
    rebalance.remove_member(
        store, group, group.members[member_id], Reason(Cause.MEMBER_LEAVE, reason, member_id, identity.reason)
    )
    return Error.NONE


def _row(identity: MemberIdentity, error: Error) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
