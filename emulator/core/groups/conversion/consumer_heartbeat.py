"""ConsumerGroupHeartbeat: which group serves it, and whether a classic one is converted for it (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_heartbeat as wire

from ...refusal import RefusedError
from ..causes import Cause, Reason
from ..classic.group import ClassicGroup
from ..classic.records import group_tombstone
from ..consumer import membership
from ..consumer.group import ConsumerGroup
from ..consumer.heartbeat import beat, check, repeat
from ..modern.loading import create, forget_new_group, no_group
from ..modern.member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from ..modern.membership import check_member
from .removal import remove
from .upgrade import upgrade

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore


def heartbeat(store: GroupStore, now: int, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Answer a heartbeat; the response waits for the records that it has caused."""
    try:
        group = store.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and repeat(store, now, group, call, request):
            return
        check(store, call, request)
        leaves = request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH)
        may_convert = request.member_epoch == JOINING_EPOCH and isinstance(group, ClassicGroup)
        if group is not None and (leaves or may_convert) and store.hold_if_frozen(group, call, request):
            return
        consumer_group = _group_of(store, now, request)
        if leaves:
            _leave(store, consumer_group, call, request)
            return
        try:
            beat(store, consumer_group, call, request)
        except RefusedError:
            forget_new_group(store, consumer_group)
            raise
    except RefusedError as error:
        message = error.refusal.error_message
        response = wire.ConsumerGroupHeartbeatResponse(error_code=error.error, error_message=message)
        store.reply(call, response, error.reason)


def _group_of(store: GroupStore, now: int, request: wire.ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
    """Return the group of a heartbeat; a join creates or converts it.

    Raises RefusedError with GROUP_ID_NOT_FOUND if there is none.
    """
    group = store.find(now, request.group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if isinstance(group, ClassicGroup) and request.member_epoch == JOINING_EPOCH and not group.is_empty:
        return upgrade(store, now, group)
    if request.member_epoch != JOINING_EPOCH or not isinstance(group, ClassicGroup | None):
        raise no_group(group, request.group_id, ConsumerGroup.kind, request.member_epoch)
    consumer_group = create(store, now, request.group_id, ConsumerGroup)
    if group is not None:
        store.replace_group(group, consumer_group)
        consumer_group.origin = group, (group_tombstone(group),)
    return consumer_group


def _leave(store: GroupStore, group: ConsumerGroup, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Remove a member, or let a static one leave for a while.

    Raises RefusedError with UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    member_id = request.member_id
    check_member(group, member_id, request.instance_id)
    if request.member_epoch == STATIC_LEAVING_EPOCH:
        return membership.leave_for_a_while(store, group, call, request)
    why = Reason(Cause.MEMBER_LEAVE, f"Member {member_id} left the consumer group.", member_id)
    response = wire.ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
    return remove(store, group, [member_id], why, (call, response))
