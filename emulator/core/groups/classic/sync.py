"""SyncGroup: the leader sends the assignment of a generation, every member gets its part.

Kafka: `GroupMetadataManager.classicGroupSync`; KIP-559 checks of protocol type and name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

from ..causes import Cause, Reason
from ..commit import GroupWrite
from . import rebalance
from .changes import park_sync, restart_session, transition
from .group import ClassicGroup, ClassicGroupState, ClassicMember
from .membership import validate_member
from .rebalance import sync_error
from .records import group_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...effects import Call
    from ..group import BaseGroup
    from ..group_store import GroupStore


def sync(store: GroupStore, group: ClassicGroup, call: Call, request: SyncGroupRequest) -> None:
    """Answer or park a SyncGroup."""
    error = _validate(store, group, request)
    if error is not Error.NONE:
        return store.reply(call, sync_error(error))
    member = group.members[request.member_id]
    member.last_call = call
    match group.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            return store.reply(call, sync_error(Error.REBALANCE_IN_PROGRESS))
        case ClassicGroupState.COMPLETING_REBALANCE:
            if member.id == group.leader_id and store.hold_if_frozen(group, call, request):
                return None
            park_sync(store, group, member, call)
            rebalance.clear_pending_sync(group, member)
            if member.id == group.leader_id:
                store_assignment(store, group, request)
            return None
        case ClassicGroupState.STABLE:
            # the assignments of the request are ignored, even the leader's
            rebalance.clear_pending_sync(group, member)
            if store.dialect.stable_sync_restarts_session:
                restart_session(store, group, member)
            return store.reply(call, sync_response(group, member))
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            raise AssertionError(f"{group!r} has a member {member.id}")


def _validate(store: GroupStore, group: ClassicGroup, request: SyncGroupRequest) -> Error:
    error = validate_member(store, group, request.member_id, request.group_instance_id)
    if error is not Error.NONE:
        return error
    if request.generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    pairs = ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name))
    may_be_unset = store.dialect.sync_may_name_unset_protocol
    if any(name is not None and name != current and not (current is None and may_be_unset) for name, current in pairs):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.NONE


def store_assignment(store: GroupStore, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Write the leader's assignment before any member receives it; members it omits get empty bytes."""
    assignments = {assignment.member_id: assignment.assignment for assignment in request.assignments}
    completed = partial(
        assignment_stored, generation=group.generation, leader_id=request.member_id, assignments=assignments
    )
    store.append(GroupWrite(group, [group_record(group, assignments)], completed=completed))


def assignment_stored(
    store: GroupStore,
    group: BaseGroup,
    error: Error,
    *,
    generation: int,
    leader_id: str,
    assignments: Mapping[str, bytes],
) -> None:
    """Answer every parked SyncGroup, unless the group has moved on while the write was in flight."""
    assert isinstance(group, ClassicGroup)
    if group.state is not ClassicGroupState.COMPLETING_REBALANCE or group.generation != generation:
        return
    if error is not Error.NONE:
        error_code = store.dialect.group_write_error(error)
        rebalance.fail_parked_syncs(store, group, error_code)
        reason = f"Error {error_code.name} when storing group assignment during SyncGroup (member: {leader_id})."
        rebalance.prepare_or_complete(store, group, Reason(Cause.STORE_ERROR, reason, leader_id))
        return
    statics = sum(member.is_static for member in group.members.values())
    reason = (
        f"Assignment received from leader {leader_id} for group {group.id} for generation {group.generation}. "
        f"The group has {len(group.members)} members, {statics} of which are static."
    )
    transition(store, group, Reason(Cause.ASSIGNED, reason, leader_id))
    for member in group.members.values():
        member.assignment = assignments.get(member.id, b"")
        rebalance.reply_to_sync(store, group, member, sync_response(group, member))


def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """Return a member's part of the assignment, empty if it has none."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
