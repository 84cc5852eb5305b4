"""StreamsGroupHeartbeat and JoinGroup where an Empty group becomes one of the other kind (KIP-1071).

An Empty classic group makes way for a streams group, and the other way round; the offsets stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import streams_group_heartbeat as wire
from koordinator.wire.messages.join_group import JoinGroupResponse

from ...refusal import RefusedError
from ..classic.group import ClassicGroup
from ..classic.join import join_existing_group
from ..classic.rebalance import join_error
from ..classic.records import group_tombstone
from ..modern.loading import create, forget_new_group, no_group
from ..modern.member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from ..modern.other_requests import other_kind
from ..streams.checks import check
from ..streams.group import StreamsGroup
from ..streams.heartbeat import beat, leave
from .downgrade import make_way

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest

    from ...effects import Call
    from ..group_store import GroupStore

LEAVING = (LEAVING_EPOCH, STATIC_LEAVING_EPOCH)
"""The epochs of a heartbeat with which a member leaves."""


def heartbeat(store: GroupStore, now: int, call: Call, request: wire.StreamsGroupHeartbeatRequest) -> None:
    """Answer a heartbeat; the response waits for the records that it has caused."""
    try:
        check(store, request)
        existing = store.groups.get(request.group_id)
        leaves = request.member_epoch in LEAVING
        may_convert = request.member_epoch == JOINING_EPOCH and isinstance(existing, ClassicGroup)
        if existing is not None and (leaves or may_convert) and store.hold_if_frozen(existing, call, request):
            return
        group = _group_of(store, now, request)
        if leaves:
            leave(store, group, call, request)
            return
        try:
            beat(store, group, call, request, is_new_group=group is not existing)
        except RefusedError:
            forget_new_group(store, group)
            raise
    except RefusedError as error:
        message = error.refusal.error_message
        response = wire.StreamsGroupHeartbeatResponse(error_code=error.error, error_message=message)
        store.reply(call, response, error.reason)


def _group_of(store: GroupStore, now: int, request: wire.StreamsGroupHeartbeatRequest) -> StreamsGroup:
    """Return the group of a heartbeat; a join creates it, or converts an Empty classic one.

    Raises RefusedError with GROUP_ID_NOT_FOUND if there is none.
    """
    group, joins = store.find(now, request.group_id), request.member_epoch == JOINING_EPOCH
    if isinstance(group, StreamsGroup):
        return group
    if not joins or not (group is None or (isinstance(group, ClassicGroup) and group.is_empty)):
        raise no_group(group, request.group_id, StreamsGroup.kind, request.member_epoch)
    streams_group = create(store, now, request.group_id, StreamsGroup)
    if group is not None:
        store.replace_group(group, streams_group)
        streams_group.origin = group, (group_tombstone(group),)
    return streams_group


def join(store: GroupStore, group: StreamsGroup, call: Call, request: JoinGroupRequest) -> None:
    """Refuse a JoinGroup, unless the group is Empty: then it makes way for a classic one."""
    if store.hold_if_frozen(group, call, request):
        return None
    if group.members:
        refusal = JoinGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL)
        return store.reply(call, refusal, other_kind(group))
    if not request.member_id:
        return join_existing_group(store, make_way(store, group), call, request)
    store.forget(group)
    return store.reply(call, join_error(Error.UNKNOWN_MEMBER_ID, request.member_id))
