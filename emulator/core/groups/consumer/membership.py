"""Membership of consumer groups: identification, static takeovers, removals.

Kafka: `GroupMetadataManager.getOrMaybeSubscribe…Member`, `consumerGroupLeave`, `consumerGroupFenceMembers`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_heartbeat as wire

from ..causes import Cause, Reason
from ..modern import membership as modern
from ..modern.changes import write
from ..modern.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from ..modern.membership import check_member, fenced, full_group, static_member, successor, unknown_member, unreleased
from .epochs import raise_epoch
from .member import ConsumerMember
from .patterns import orphaned
from .records import current_record

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...effects import Call
    from ..group_store import GroupStore
    from ..modern.changes import Answer
    from .group import ConsumerGroup
    from .member import Partitions


def check_capacity(store: GroupStore, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Raise RefusedError with GROUP_MAX_SIZE_REACHED if the group is full and the member is not in it."""
    if store.dialect.full_group_takes_static_members and instance_id and group.owner_of(instance_id) is not None:
        return
    limit = store.settings.group_consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise full_group(group, limit)


def identify(
    store: GroupStore, group: ConsumerGroup, member_id: str, request: wire.ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerMember, ConsumerMember | None]:
    """Return the member of a heartbeat, and the static member that it replaces, if any.

    Raises RefusedError with UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH or UNRELEASED_INSTANCE_ID.
    """
    joins, instance_id = request.member_epoch == JOINING_EPOCH, request.instance_id
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None and not joins:
            raise unknown_member(group, member_id)
    else:
        owner = static_member(group, instance_id)
        if joins and owner is not None:
            if owner.classic is None and not owner.has_left():
                raise unreleased(owner, member_id, instance_id)
            return successor(owner, member_id), owner
        if not joins:
            check_member(group, member_id, instance_id)
        member = group.members.get(member_id)
    if member is None:
        return ConsumerMember(member_id, instance_id), None
    if not joins or not store.dialect.members_may_rejoin:
        check_epoch(group, member, request)
    return member, None


def check_epoch(group: ConsumerGroup, member: ConsumerMember, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Raise RefusedError with FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The previous epoch passes as well if the member owns nothing beyond its assignment: the answer was lost.
    """
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch and epoch < member.epoch and request.topic_partitions is not None:
        owned = ((row.topic_id, partition) for row in request.topic_partitions for partition in row.partitions)
        if all(partition in member.assigned.get(topic, {}) for topic, partition in owned):
            return
    raise fenced(group, member, epoch)


def _without_epochs(member: ConsumerMember) -> Partitions:
    return {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}


def leave_for_a_while(
    store: GroupStore, group: ConsumerGroup, call: Call, request: wire.ConsumerGroupHeartbeatRequest
) -> None:
    """Let a static member go, with its partitions, until it returns or its session ends."""
    member = group.members[request.member_id]
    away = replace(member, epoch=STATIC_LEAVING_EPOCH, assigned=_without_epochs(member), pending={})
    record = current_record(group.id, away, with_epochs=store.dialect.partitions_have_epochs)
    why = Reason(Cause.MEMBER_LEAVE, f"Static member {member.id} temporarily left the consumer group.", member.id)
    response = wire.ConsumerGroupHeartbeatResponse(member_id=member.id, member_epoch=request.member_epoch)
    write(store, group, [record], why, (call, response))


def remove(
    store: GroupStore, group: ConsumerGroup, member_ids: Collection[str], why: Reason, answer: Answer = None
) -> None:
    """Remove members and raise the group epoch; the next heartbeat of any member computes the target."""
    names = {name for each in group.members.values() if each.id not in member_ids for name in group.topics_of(each)}
    epoch, epoch_records = raise_epoch(store, group, names, changed=True)
    modern.remove(
        store, group, member_ids, epoch, [*orphaned(group, member_ids), *epoch_records], why=why, answer=answer
    )
