"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-848).

None of these requests is parked. The generation of such a member is its epoch; REBALANCE_IN_PROGRESS makes it rejoin,
so that a revocation takes two rounds. Kafka: `GroupMetadataManager.classicGroupJoinToConsumerGroup`,
`classicGroupSyncToConsumerGroup`, `classicGroupHeartbeatToConsumerGroup`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from koordinator.wire.messages.consumer_protocol import read_subscription
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from koordinator.wire.primitives import Malformed

from ...refusal import RefusedError, refused
from ...timers import ClassicJoinTimeout, ClassicSyncTimeout
from ..causes import Cause, Reason
from ..classic.join import MEMBER_ID_REQUIRED_SINCE, join_existing_group
from ..classic.rebalance import join_error, sync_error
from ..consumer import membership
from ..consumer.member import ConsumerMember, MemberState
from ..consumer.patterns import needs_resolution, schedule_resolution
from ..consumer.progress import Update, advance
from ..group import CONSUMER
from ..modern.changes import restart_session, write
from ..modern.member import UNCHANGED, member_id_of, sorted_names
from ..modern.membership import check_member, static_member, successor, unknown_member
from ..modern.steps import set_revocation_timeout
from .downgrade import assignment_of, downgrade, make_way, may_downgrade
from .policy import DISABLED, migration_policy
from .removal import remove

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription
    from koordinator.wire.messages.heartbeat import HeartbeatRequest

    from ...effects import Call
    from ..consumer.group import ConsumerGroup
    from ..group_store import GroupStore


def join(store: GroupStore, group: ConsumerGroup, call: Call, request: JoinGroupRequest) -> None:
    """Answer a JoinGroup with the member's epoch, after its next step; an Empty group makes way for a classic one."""
    if store.hold_if_frozen(group, call, request):
        return None
    if not group.members:
        if not request.member_id:
            return join_existing_group(store, make_way(store, group), call, request)
        store.forget(group)
        return store.reply(call, join_error(Error.UNKNOWN_MEMBER_ID, request.member_id))
    try:
        return _join(store, group, call, request)
    except RefusedError as refusal:
        return store.reply(call, join_error(refusal.error, ""), str(refusal))


def _join(store: GroupStore, group: ConsumerGroup, call: Call, request: JoinGroupRequest) -> None:
    if migration_policy(store) == DISABLED:
        reason = f"group {group.id!r} is a consumer group, and group.consumer.migration.policy=disabled lets no classic"
        raise refused(Error.INCONSISTENT_GROUP_PROTOCOL, f"{reason} member join; set bidirectional")
    member_id = request.member_id or member_id_of(store.new_uuid())
    membership.check_capacity(store, group, member_id, request.group_instance_id)
    if not _is_supported(group, request):
        reason = f"the classic members of the consumer group {group.id!r} offer no protocol of this request"
        raise refused(Error.INCONSISTENT_GROUP_PROTOCOL, f"{reason}; it must have the type consumer and one of theirs")
    instance_id, is_new = request.group_instance_id, not request.member_id
    if is_new and instance_id is None and call.api_version >= MEMBER_ID_REQUIRED_SINCE:
        return store.reply(call, join_error(Error.MEMBER_ID_REQUIRED, member_id))
    member, replaced = _identify(group, member_id, instance_id, is_new=is_new)
    owner = None if instance_id is None else static_member(group, instance_id)
    downgrades = owner is not None and may_downgrade(store, group, [owner.id], 1)
    subscription = _subscription(store, request)
    update = Update(
        before=member,
        after=_updated(member, call, request, subscription),
        replaced=replaced,
        listed=subscription.topics,
        owned=[
            (topic.topic_id, partition)
            for row in subscription.owned_partitions
            if (topic := store.cluster.topics.get(row.topic)) is not None
            for partition in row.partitions
        ],
        keeps_target=downgrades,
    )
    joined = advance(store, group, update)
    response = JoinGroupResponse(
        generation_id=joined.member.epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
        member_id=member_id,
    )
    if downgrades and owner is not None:
        return downgrade(store, group, [owner.id], joined.why, (call, response), joined)
    is_due = needs_resolution(store, group, update.before, update.after)
    write(store, group, joined.records, joined.why, (call, response))
    if joined.member is not update.after:
        set_revocation_timeout(group, joined.member)
    group.timers.cancel(ClassicJoinTimeout(member_id))
    group.timers.set(ClassicSyncTimeout(member_id), group.now + request.rebalance_timeout_ms)
    restart_session(store, group, member_id, call)
    if is_due:
        schedule_resolution(group, call)
    return None


def sync(store: GroupStore, group: ConsumerGroup, call: Call, request: SyncGroupRequest) -> None:
    """Answer a SyncGroup with what the member has; the assignments of the request are ignored."""
    member = _find_member(group, request)
    if isinstance(member, Error):
        return store.reply(call, sync_error(member))
    assert member.classic is not None
    name = member.classic.supported_protocols[0].name
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
        return store.reply(call, sync_error(Error.INCONSISTENT_GROUP_PROTOCOL))
    if member.epoch < _awaited_epoch(store, group) and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _await_join(group, member)
        return store.reply(call, sync_error(Error.REBALANCE_IN_PROGRESS))
    group.timers.cancel(ClassicSyncTimeout(member.id))
    restart_session(store, group, member.id, call)
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_of(store, member.classic.supported_protocols[0].metadata, member.assigned),
    )
    return store.reply(call, response)


def _awaited_epoch(store: GroupStore, group: ConsumerGroup) -> int:
    """Return the epoch that a classic member has to rejoin for."""
    return group.target_epoch if store.dialect.classic_members_follow_targets else group.epoch


def heartbeat(store: GroupStore, group: ConsumerGroup, call: Call, request: HeartbeatRequest) -> Error:
    """Return the error of a heartbeat; REBALANCE_IN_PROGRESS if the member has a step to take."""
    member = _find_member(group, request)
    if isinstance(member, Error):
        return member
    restart_session(store, group, member.id, call)
    must_rejoin = (
        member.epoch < _awaited_epoch(store, group)
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
    )
    if not must_rejoin:
        return Error.NONE
    _await_join(group, member)
    return Error.REBALANCE_IN_PROGRESS


def leave(store: GroupStore, group: ConsumerGroup, call: Call, request: LeaveGroupRequest) -> None:
    """Remove the members of a LeaveGroup in one step, whatever their protocol; each entry has its own result."""
    if store.hold_if_frozen(group, call, request):
        return
    rows: list[MemberResponse] = []
    left: dict[str, None] = {}
    for identity in request.members:
        member_id, instance_id, error = identity.member_id, identity.group_instance_id, Error.NONE
        try:
            if instance_id is not None:
                member_id = member_id or group.owner_of(instance_id) or ""
            check_member(group, member_id, instance_id)
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
        remove(store, group, left, Reason(Cause.MEMBER_LEAVE, reason, next(iter(left))), (call, response))
    else:
        store.reply(call, response)


def _find_member(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerMember | Error:
    """Return the member of a request, or why it is refused."""
    if request.group_instance_id is not None:
        try:
            check_member(group, request.member_id, request.group_instance_id)
        except RefusedError as refusal:
            return refusal.error
    member = group.members.get(request.member_id)
    if member is None or member.classic is None:
        return Error.UNKNOWN_MEMBER_ID
    return member if request.generation_id == member.epoch else Error.ILLEGAL_GENERATION


def _await_join(group: ConsumerGroup, member: ConsumerMember) -> None:
    """Limit the time until a member rejoins; being told again does not extend it."""
    key = ClassicJoinTimeout(member.id)
    if key not in group.timers:
        group.timers.set(key, group.now + member.rebalance_timeout_ms)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(
        (topic, partition) in group.held
        for topic, partitions in group.targets.get(member.id, {}).items()
        for partition in partitions
        if partition not in member.assigned.get(topic, {})
    )


def _identify(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_new: bool
) -> tuple[ConsumerMember, ConsumerMember | None]:
    """Return the member of a JoinGroup, and the static member that it replaces, whether or not that has left."""
    if instance_id is not None:
        owner = static_member(group, instance_id)
        if is_new and owner is not None:
            return successor(owner, member_id), owner
        if not is_new:
            check_member(group, member_id, instance_id)
    return group.members.get(member_id) or ConsumerMember(member_id, instance_id), None


def _is_supported(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Return whether the joiner is a consumer, and all classic members have one of its protocols."""
    if request.protocol_type != CONSUMER or not request.protocols:
        return False
    offers = [
        {each.name for each in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return not offers or any(each.name in set.intersection(*offers) for each in request.protocols)


def _subscription(store: GroupStore, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except Malformed:
        is_inconsistent = store.dialect.unreadable_classic_members_are_inconsistent
        error = Error.INCONSISTENT_GROUP_PROTOCOL if is_inconsistent else Error.UNKNOWN_SERVER_ERROR
        raise refused(error, "the metadata of its first protocol is no subscription of a consumer") from None


def _updated(
    member: ConsumerMember, call: Call, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    protocols: Sequence[ClassicProtocol] = [
        ClassicProtocol(name=each.name, metadata=each.metadata) for each in request.protocols
    ]
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == UNCHANGED else timeout_ms,
        names=sorted_names(subscription.topics),
        regex="",
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms, supported_protocols=tuple(protocols)
        ),
    )
