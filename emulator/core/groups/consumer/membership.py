"""Membership of consumer groups: identification, static takeovers, leaves, expiries.

Kafka: `GroupMetadataManager.getOrMaybeSubscribe…Member`, `consumerGroupLeave`, `consumerGroupFenceMembers`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_heartbeat as wire
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

from ...journal import Journal
from ...refusal import Refusal, RefusedError
from ...timers import ClassicJoinTimeout, ClassicSyncTimeout, PatternResolution, RevocationTimeout, SessionExpiry
from ..causes import Cause, Reason
from ..classic.group import ClassicGroup
from ..records import group_tombstone
from . import migration
from .changes import member_timers, note_loaded, restart_session, write
from .epochs import raise_epoch
from .group import ConsumerGroup
from .member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, ConsumerMember, MemberState
from .patterns import orphaned, resolve
from .records import current_record, member_tombstones

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from koordinator.wire.apis import Message

    from ...effects import Call
    from ...timers import TimerKey
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .member import Partitions


RETRY_MS = 500
"""The time after which a timer fires again whose records could not be written (`CoordinatorTimer`)."""


def refused(error: Error, message: str) -> RefusedError:
    """Return the exception for an error with Kafka's message."""
    return RefusedError(Refusal(error, message))


def group_of(store: GroupStore, now: int, request: wire.ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
    """Return the group of a heartbeat; a join creates it. Raises RefusedError with 69 if there is none."""
    group = store.find(now, request.group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if isinstance(group, ClassicGroup) and request.member_epoch == JOINING_EPOCH and not group.is_empty:
        return migration.upgrade(store, now, group)
    if group is not None and request.member_epoch != JOINING_EPOCH:
        raise refused(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
    if request.member_epoch != JOINING_EPOCH:
        kind = "Group" if request.member_epoch < 0 else "Consumer group"
        raise refused(Error.GROUP_ID_NOT_FOUND, f"{kind} {request.group_id} not found.")
    consumer_group = store.create_consumer_group(now, request.group_id)
    if isinstance(group, ClassicGroup):
        store.replace_group(group, consumer_group)
        consumer_group.origin = group, (group_tombstone(group),)
    return consumer_group


def forget_new_group(store: GroupStore, group: ConsumerGroup) -> None:
    """Undo the creation of a group whose first join is refused; a conversion that is being written stays."""
    if group.origin is not None:
        store.replace_group(group, group.origin[0])
    else:
        store.discard_if_unused(group)


def check_capacity(store: GroupStore, group: ConsumerGroup, member_id: str) -> None:
    """Raise RefusedError with 81 if the group is full and the member is not in it."""
    limit = store.settings.group_consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        text = f"The consumer group has reached its maximum capacity of {limit} members."
        raise refused(Error.GROUP_MAX_SIZE_REACHED, text)


def identify(
    store: GroupStore, group: ConsumerGroup, member_id: str, request: wire.ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerMember, ConsumerMember | None]:
    """Return the member of a heartbeat, and the static member that it replaces, if any.

    Raises RefusedError: 25, 82, 110 or 111.
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
    """Return the member of an instance id, or None. Raises RefusedError with 25 if the id's last owner is gone.

    Kafka: `ConsumerGroup.staticMember`.
    """
    owner_id = group.owner_of(instance_id)
    if owner_id is None:
        return None
    if owner_id not in group.members:
        raise unknown_member(group, owner_id)
    return group.members[owner_id]


def check_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> None:
    """Raise RefusedError: 25 for an unknown instance id, 82 if another member has it."""
    owner = static_member(group, instance_id)
    if owner is None:
        raise refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.id != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner.id}."
        raise refused(Error.FENCED_INSTANCE_ID, text)


def check_epoch(member: ConsumerMember, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Raise RefusedError with 110 unless the epoch is the member's.

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


def leave(store: GroupStore, now: int, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Remove a member, or let a static one leave for a while. Raises RefusedError: 25, 69 or 82."""
    group, member_id = group_of(store, now, request), request.member_id
    if request.instance_id is not None:
        check_instance(group, member_id, request.instance_id)
    elif member_id not in group.members:
        raise unknown_member(group, member_id)
    response = wire.ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
    if request.member_epoch == LEAVING_EPOCH:
        why = Reason(Cause.MEMBER_LEAVE, f"Member {member_id} left the consumer group.", member_id)
        return remove(store, group, [member_id], why, call, response)
    member = group.members[member_id]
    away = replace(member, epoch=STATIC_LEAVING_EPOCH, assigned=_without_epochs(member), pending={})
    record = current_record(group.id, away, with_epochs=store.dialect.partitions_have_epochs)
    why = Reason(Cause.MEMBER_LEAVE, f"Static member {member_id} temporarily left the consumer group.", member_id)
    return write(store, group, [record], why, call, response)


def leave_group(store: GroupStore, group: ConsumerGroup, call: Call, request: LeaveGroupRequest) -> None:
    """Remove the members of a LeaveGroup in one step, whatever their protocol; each entry has its own result."""
    rows: list[MemberResponse] = []
    left: dict[str, None] = {}
    for identity in request.members:
        member_id, instance_id, error = identity.member_id, identity.group_instance_id, Error.NONE
        try:
            if instance_id is not None:
                member_id = member_id or group.owner_of(instance_id) or ""
                check_instance(group, member_id, instance_id)
            elif member_id not in group.members:
                raise unknown_member(group, member_id)
            if group.members[member_id].classic is None and not store.dialect.consumer_members_leave_by_leave_group:
                raise unknown_member(group, member_id)
            left[member_id] = None
        except RefusedError as refusal:
            error = refusal.error
        row = MemberResponse(member_id=identity.member_id, group_instance_id=instance_id, error_code=error)
        rows.append(row)
    response = LeaveGroupResponse(members=tuple(rows))
    if left:
        reason = f"explicit `LeaveGroup` request for ({', '.join(left)}) members."
        remove(store, group, left, Reason(Cause.MEMBER_LEAVE, reason, next(iter(left))), call, response)
    else:
        store.reply(call, response)


def remove(
    store: GroupStore,
    group: ConsumerGroup,
    member_ids: Collection[str],
    why: Reason,
    call: Call | None = None,
    response: Message | None = None,
) -> None:
    """Remove members and raise the group epoch; the next heartbeat of any member computes the target."""
    if migration.may_downgrade(store, group, member_ids):
        return migration.downgrade(store, group, member_ids, why, (call, response))
    names = {name for each in group.members.values() if each.id not in member_ids for name in group.topics_of(each)}
    _, epoch_records = raise_epoch(store, group, names, changed=True)
    records = [*member_tombstones(group.id, member_ids), *orphaned(group, member_ids), *epoch_records]
    write(store, group, records, why, call, response)
    for key in [key for member_id in member_ids for key in member_timers(member_id)]:
        group.timers.cancel(key)
    return None


def load(store: GroupStore, group: ConsumerGroup, records: Iterable[CoordinatorRecord]) -> None:
    """Restore a group from its records; every member gets a full session and, if it revokes, a full timeout."""
    journal = Journal()
    for record in records:
        group.replay(record, journal)
    group.stored = True
    note_loaded(store, group)
    for member in list(group.members.values()):
        restart_session(store, group, member.id, None)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            group.timers.set(RevocationTimeout(member.id), group.now + member.rebalance_timeout_ms)


def fire(store: GroupStore, group: ConsumerGroup, key: TimerKey) -> None:
    """Act on a timer: resolve patterns, or remove a member that is silent or late."""
    if isinstance(key, PatternResolution):
        return resolve(store, group)
    member_id = getattr(key, "member_id", "")
    member = group.members.get(member_id)
    cause, text = EXPIRIES[type(key)]
    is_over = isinstance(key, RevocationTimeout) and (
        member is None or member.state is not MemberState.UNREVOKED_PARTITIONS or member.has_left()
    )
    if member is not None and not is_over:
        # counts if the removal cannot be written
        group.timers.set(key, group.now + RETRY_MS)
        remove(store, group, [member_id], Reason(cause, text.format(member_id), member_id))
    return None


EXPIRIES: Mapping[type, tuple[Cause, str]] = {
    SessionExpiry: (Cause.SESSION_EXPIRED, "Member {} fenced from the group because its session expired."),
    RevocationTimeout: (
        Cause.REVOCATION_TIMEOUT,
        "Member {} fenced from the group because it failed to transition to the next epoch in time.",
    ),
    ClassicJoinTimeout: (
        Cause.JOIN_TIMEOUT,
        "Member {} fenced from the group because it did not rejoin within its rebalance timeout.",
    ),
    ClassicSyncTimeout: (
        Cause.SYNC_TIMEOUT,
        "Member {} fenced from the group because it did not sync within its rebalance timeout.",
    ),
}
"""Why a timer removes its member."""
