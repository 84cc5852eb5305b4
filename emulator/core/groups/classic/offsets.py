"""Offsets of classic groups: the members that may commit. Kafka: `ClassicGroup.validateOffsetCommit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from .changes import restart_session
from .group import ClassicGroup, ClassicGroupState
from .membership import validate_member

if TYPE_CHECKING:
    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

    from ...effects import Call
    from ..group_store import GroupStore


def commit_error(store: GroupStore, group: ClassicGroup, call: Call, request: OffsetCommitRequest) -> Error:
    """Return why a commit is refused, or NONE; a member's commit restarts its session."""
    generation, member_id, instance_id = (
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
    )
    if generation < 0 and group.state is ClassicGroupState.EMPTY:
        # an admin client or a consumer without group management: its member id is not validated
        return Error.NONE
    if generation < 0 and not member_id and instance_id is None:
        # a group with members accepts only commits of members
        return Error.UNKNOWN_MEMBER_ID
    error = validate_member(store, group, member_id, instance_id)
    if error is not Error.NONE:
        return error
    if generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    member = group.members[member_id]
    member.last_call = call
    restart_session(store, group, member)
    return Error.NONE


def transactional_commit_error(store: GroupStore, group: ClassicGroup | None, request: TxnOffsetCommitRequest) -> Error:
    """Return why a commit in a transaction is refused, or NONE; a producer need not name a member (KIP-447)."""
    generation, member_id, instance_id = (
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
    )
    if not store.dialect.empty_group_accepts_any_transactional_member:
        error = validate_member(store, group, member_id, instance_id) if group is not None else Error.UNKNOWN_MEMBER_ID
        if error is Error.FENCED_INSTANCE_ID or (error is not Error.NONE and member_id):
            return error
        known = generation < 0 or generation == (0 if group is None else group.generation)
        return Error.NONE if known else Error.ILLEGAL_GENERATION
    if group is None or group.state is ClassicGroupState.EMPTY:
        if generation < 0:
            return Error.NONE
        is_new = store.dialect.waits_for_log and (group is None or not store.is_visible(group))
        return Error.GROUP_ID_NOT_FOUND if is_new else Error.UNKNOWN_MEMBER_ID
    if generation < 0 and not member_id and instance_id is None:
        return Error.NONE
    error = validate_member(store, group, member_id, instance_id)
    if error is not Error.NONE:
        return error
    return Error.NONE if generation == group.generation else Error.ILLEGAL_GENERATION
