"""Heartbeat and LeaveGroup, and the check that every request of a member goes through.

KIP-345: fencing by `group.instance.id`, LeaveGroup for several members at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.core import rebalance
from koordinator.emulator.core.group import Group, State
from koordinator.emulator.core.stage import Stage, Why
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from koordinator.emulator.core.effects import Call


def refusal(group: Group, member_id: str, instance_id: str | None) -> Error:
    """Why a request of this member is refused, or NONE.

    Fencing comes first: the old id of a replaced static member sees FENCED_INSTANCE_ID whatever else is wrong. The
    id of a static member without its instance id passes.
    """
    if instance_id is not None:
        known_as = group.static_members.get(instance_id)
        if known_as is None:
            return Error.UNKNOWN_MEMBER_ID
        if known_as != member_id:
            return Error.FENCED_INSTANCE_ID
    return Error.NONE if member_id in group.members else Error.UNKNOWN_MEMBER_ID


def heartbeat(stage: Stage, now: int, call: Call, request: HeartbeatRequest) -> None:
    """A member lives. In a join phase it is also told to rejoin (REBALANCE_IN_PROGRESS)."""
    stage.reply(call, HeartbeatResponse(error_code=_heard(stage, now, request)))


def _heard(stage: Stage, now: int, request: HeartbeatRequest) -> Error:
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    status = stage.status(request.group_id)
    if status is Error.COORDINATOR_LOAD_IN_PROGRESS:
        # the group is not known yet, and nobody is to lose its membership for that
        return Error.NONE
    if status is not Error.NONE:
        return status
    group = stage.find(now, request.group_id)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = refusal(group, request.member_id, request.group_instance_id)
    if error is not Error.NONE:
        return error
    if request.generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    match group.state:
        case State.PREPARING_REBALANCE:
            stage.restart_session(group, group.members[request.member_id])
            return Error.REBALANCE_IN_PROGRESS
        case State.COMPLETING_REBALANCE | State.STABLE:
            stage.restart_session(group, group.members[request.member_id])
            return Error.NONE
        case State.EMPTY | State.DEAD:
            raise AssertionError(f"{group!r} has a member {request.member_id}")


def leave_group(stage: Stage, now: int, call: Call, request: LeaveGroupRequest) -> None:
    """Members leave, one or several (KIP-345), by member id or by instance id; each has its own result."""
    if not request.group_id:
        return stage.reply(call, LeaveGroupResponse(error_code=Error.INVALID_GROUP_ID))
    status = stage.status(request.group_id)
    if status is not Error.NONE:
        return stage.reply(call, LeaveGroupResponse(error_code=status))
    group = stage.find(now, request.group_id)
    if group is None:
        rows = tuple(_row(identity, Error.UNKNOWN_MEMBER_ID) for identity in request.members)
        return stage.reply(call, LeaveGroupResponse(members=rows))
    results = [(identity, _leave(stage, group, identity)) for identity in request.members]
    stage.reply(call, LeaveGroupResponse(members=tuple(_row(identity, error) for identity, error in results)))
    left = [identity for identity, error in results if error is Error.NONE]
    if left:
        # one evaluation after the whole batch; a pending id that leaves counts, too
        names = ", ".join(identity.member_id or identity.group_instance_id or "" for identity in left)
        reason = f"explicit `LeaveGroup` request for ({names}) members."
        why = Why("member_leave", reason, left[0].member_id or None, left[0].reason)
        match group.state:
            case State.STABLE | State.COMPLETING_REBALANCE:
                rebalance.prepare(stage, group, why)
            case State.PREPARING_REBALANCE:
                rebalance.complete_if_all_joined(stage, group)
            case State.EMPTY | State.DEAD:
                pass
    return None


def _leave(stage: Stage, group: Group, identity: MemberIdentity) -> Error:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        known_as = group.static_members.get(instance_id) if instance_id is not None else None
        if known_as is None:
            return Error.UNKNOWN_MEMBER_ID
        member_id = known_as
    elif member_id in group.pending_members:
        group.remove(member_id)
        return Error.NONE
    else:
        error = refusal(group, member_id, instance_id)
        if error is not Error.NONE:
            return error
    reason = f"Removing member {member_id} on LeaveGroup; client reason: {identity.reason or 'not provided'}"
    rebalance.dismiss(stage, group, group.members[member_id], Why("member_leave", reason, member_id, identity.reason))
    return Error.NONE


def _row(identity: MemberIdentity, error: Error) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
