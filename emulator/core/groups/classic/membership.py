"""Heartbeat, LeaveGroup, and the validation of members in every request.

KIP-345: fencing by `group.instance.id`, LeaveGroup for several members at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

from ..causes import Cause, Reason
from ..commit import answer_after_writes
from . import rebalance
from .changes import restart_session
from .group import ClassicGroup, ClassicGroupState

if TYPE_CHECKING:
    from koordinator.wire.messages.heartbeat import HeartbeatRequest

    from ...effects import Call
    from ..group_store import GroupStore


NONE = Error.NONE
"""Bound once: on Python 3.11 the attribute lookup takes as long as a call."""


def validate_member(store: GroupStore, group: ClassicGroup, member_id: str, instance_id: str | None) -> Error:
    """Validate the member of any request but JoinGroup."""
    if instance_id not in group.static_members and not store.dialect.unknown_instance_id_is_rejected:
        instance_id = None
    return group.member_error(member_id, instance_id)


def heartbeat(store: GroupStore, group: ClassicGroup, call: Call, request: HeartbeatRequest) -> Error:
    """Return the error of a heartbeat; in a join phase REBALANCE_IN_PROGRESS, so that the member rejoins."""
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
            restart_session(store, group, member)
            return NONE
        case ClassicGroupState.PREPARING_REBALANCE:
            restart_session(store, group, member)
            return Error.REBALANCE_IN_PROGRESS
        case ClassicGroupState.COMPLETING_REBALANCE if not store.dialect.heartbeat_succeeds_before_sync:
            return Error.REBALANCE_IN_PROGRESS
        case ClassicGroupState.COMPLETING_REBALANCE:
            restart_session(store, group, member)
            return NONE
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            raise AssertionError(f"{group!r} has a member {request.member_id}")


def leave(store: GroupStore, group: ClassicGroup, call: Call, request: LeaveGroupRequest) -> None:
    """Remove members by member id or instance id (KIP-345); each entry has its own result."""
    may_end_state = group.state is not ClassicGroupState.PREPARING_REBALANCE
    if may_end_state and store.hold_if_frozen(group, call, request):
        return None
    dialect, results, left = store.dialect, list[MemberResponse](), list[MemberIdentity]()
    for identity in request.members:
        was_pending = identity.member_id in group.pending_members
        if was_pending and identity.group_instance_id is not None and dialect.leave_fails_for_pending_instance:
            return store.reply(call, LeaveGroupResponse(error_code=Error.UNKNOWN_SERVER_ERROR))
        error = _remove_leaving_member(store, group, identity)
        results.append(leave_row(identity, error))
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


def leave_row(identity: MemberIdentity, error: Error) -> MemberResponse:
    """Return the result of one member."""
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
