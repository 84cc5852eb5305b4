"""Membership of consumer groups: identification, static takeovers, removals.

Kafka: `GroupMetadataManager.getOrMaybeSubscribe…Member`, `consumerGroupLeave`, `consumerGroupFenceMembers`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_heartbeat as wire

from ...refusal import Refusal, RefusedError
from ..causes import Cause, Reason
from ..modern.member import JOINING_EPOCH
from .changes import member_timers, write
from .epochs import raise_epoch
from .member import STATIC_LEAVING_EPOCH, ConsumerMember
from .patterns import orphaned
from .records import current_record, member_tombstones, target_epoch_record

if TYPE_CHECKING:
    from collections.abc import Collection

    from koordinator.wire.apis import Message

    from ...effects import Call
    from ..group_store import GroupStore
    from .group import ConsumerGroup
    from .member import Partitions


def refused(error: Error, message: str) -> RefusedError:
    """Return the exception for an error with Kafka's message."""
    return RefusedError(Refusal(error, message))


def forget_new_group(store: GroupStore, group: ConsumerGroup) -> None:
    """Undo the creation of a group whose first join is refused; a conversion that is being written stays."""
    if group.origin is not None:
        store.replace_group(group, group.origin[0])
    else:
        store.discard_if_unused(group)


def check_capacity(store: GroupStore, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Raise RefusedError with GROUP_MAX_SIZE_REACHED if the group is full and the member is not in it."""
    if store.dialect.full_group_takes_static_members and instance_id and group.owner_of(instance_id) is not None:
        return
    limit = store.settings.group_consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        text = f"The consumer group has reached its maximum capacity of {limit} members."
        raise refused(Error.GROUP_MAX_SIZE_REACHED, text)


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
                text = (
                    f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                    f"instance id is owned by {owner.id} member."
                )
                raise refused(Error.UNRELEASED_INSTANCE_ID, text)
            return successor(owner, member_id), owner
        if not joins:
            check_instance(group, member_id, instance_id)
        member = group.members.get(member_id)
    if member is None:
        return ConsumerMember(member_id, instance_id), None
    if not joins or not store.dialect.members_may_rejoin:
        check_epoch(member, request)
    return member, None


def unknown_member(group: ConsumerGroup, member_id: str) -> RefusedError:
    """Return the refusal of a member that is not in the group."""
    return refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.id}.")


def static_member(group: ConsumerGroup, instance_id: str) -> ConsumerMember | None:
    """Return the member of an instance id, or None.

    Raises RefusedError with UNKNOWN_MEMBER_ID if the id's last owner is gone.

    Kafka: `ConsumerGroup.staticMember`.
    """
    owner_id = group.owner_of(instance_id)
    if owner_id is None:
        return None
    if owner_id not in group.members:
        raise unknown_member(group, owner_id)
    return group.members[owner_id]


def check_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> None:
    """Raise RefusedError: UNKNOWN_MEMBER_ID for an unknown instance id, FENCED_INSTANCE_ID if another member has it."""
    owner = static_member(group, instance_id)
    if owner is None:
        raise refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.id != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner.id}."
        raise refused(Error.FENCED_INSTANCE_ID, text)


def check_epoch(member: ConsumerMember, request: wire.ConsumerGroupHeartbeatRequest) -> None:
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
    relation = "greater" if epoch > member.epoch else "smaller"
    text = (
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise refused(Error.FENCED_MEMBER_EPOCH, text)


def successor(owner: ConsumerMember, member_id: str) -> ConsumerMember:
    """Return the member that takes a static member's place: with its partitions, its state and its subscription."""
    return replace(owner, id=member_id, epoch=0, previous_epoch=0)


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
    write(store, group, [record], why, call, response)


def remove(
    store: GroupStore,
    group: ConsumerGroup,
    member_ids: Collection[str],
    why: Reason,
    call: Call | None = None,
    response: Message | None = None,
) -> None:
    """Remove members and raise the group epoch; the next heartbeat of any member computes the target."""
    names = {name for each in group.members.values() if each.id not in member_ids for name in group.topics_of(each)}
    epoch, epoch_records = raise_epoch(store, group, names, changed=True)
    records = [*member_tombstones(group.id, member_ids), *orphaned(group, member_ids), *epoch_records]
    if store.dialect.emptied_group_gets_target and len(member_ids) == len(group.members):
        records.append(target_epoch_record(group.id, epoch, 0))
    write(store, group, records, why, call, response)
    for key in [key for member_id in member_ids for key in member_timers(member_id)]:
        group.timers.cancel(key)
