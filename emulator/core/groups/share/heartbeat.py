"""ShareGroupHeartbeat: members join, learn their partitions, and leave (KIP-932).

An error leaves everything as it was. Kafka: `GroupCoordinatorService.shareGroupHeartbeat`,
`GroupMetadataManager.shareGroupHeartbeat`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import share_group_heartbeat as wire

from ...java.hash_tables import HashTable
from ...refusal import RefusedError, refused
from ...timers import SessionExpiry
from ..causes import Cause, Reason
from ..modern.changes import restart_session, write
from ..modern.loading import create, no_group
from ..modern.member import JOINING_EPOCH, LEAVING_EPOCH, sorted_names
from ..modern.membership import RETRY_MS, check_member, fenced, full_group, remove, unknown_member, updated
from ..modern.topics import metadata_hash
from .epochs import advance
from .group import SHARE, ShareGroup
from .initialization import send, to_initialize
from .member import ShareMember
from .records import group_record, state_partitions_record

if TYPE_CHECKING:
    from ...effects import Call
    from ...timers import TimerKey
    from ..group_store import GroupStore
    from ..modern.changes import Answer

MEMBER_ID_MAX = 36
"""The length of the longest member id: that of a UUID in hexadecimal digits."""


def heartbeat(store: GroupStore, now: int, call: Call, request: wire.ShareGroupHeartbeatRequest) -> None:
    """Answer a heartbeat; the response waits for the records that it has caused."""
    try:
        _check(store, request)
        existing = store.groups.get(request.group_id)
        leaves = request.member_epoch == LEAVING_EPOCH
        if existing is not None and leaves and store.hold_if_frozen(existing, call, request):
            return
        group = _group_of(store, now, request)
        if leaves:
            _leave(store, group, call, request)
            return
        try:
            _beat(store, group, call, request)
        except RefusedError:
            store.discard_if_unused(group)
            raise
    except RefusedError as error:
        message = error.refusal.error_message
        store.reply(call, wire.ShareGroupHeartbeatResponse(error_code=error.error, error_message=message), error.reason)


def _check(store: GroupStore, request: wire.ShareGroupHeartbeatRequest) -> None:
    """Raise RefusedError for a request that no group has to see; the order of the checks is visible."""
    if not store.cluster.features.serves_share_groups:
        raise store.cluster.features.not_served(SHARE)
    if not request.member_id or len(request.member_id) > MEMBER_ID_MAX:
        raise refused(Error.INVALID_REQUEST)
    joins = request.member_epoch == JOINING_EPOCH
    problems = (
        (not request.member_id.strip(), "MemberId can't be empty."),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
        (joins and not request.subscribed_topic_names, "SubscribedTopicNames must be set in first request."),
        (request.member_epoch < LEAVING_EPOCH, "MemberEpoch is invalid."),
    )
    for applies, message in problems:
        if applies:
            raise refused(Error.INVALID_REQUEST, message)
    status = store.status(request.group_id)
    if status is not Error.NONE:
        raise refused(status)


def _group_of(store: GroupStore, now: int, request: wire.ShareGroupHeartbeatRequest) -> ShareGroup:
    """Return the group of a heartbeat; a join creates it. Raises RefusedError with GROUP_ID_NOT_FOUND."""
    group = store.find(now, request.group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None or request.member_epoch != JOINING_EPOCH:
        raise no_group(group, request.group_id, ShareGroup.kind, request.member_epoch)
    return create(store, now, request.group_id, ShareGroup)


def _beat(store: GroupStore, group: ShareGroup, call: Call, request: wire.ShareGroupHeartbeatRequest) -> None:
    """Serve a heartbeat of a member that joins or stays. Raises RefusedError."""
    member = _identify(store, group, request)
    names = request.subscribed_topic_names
    after = updated(
        member,
        rack_id=request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        names=None if names is None else sorted_names(names),
    )
    reconciled, epoch, records = advance(store, group, member, after)
    state = to_initialize(store, group, after)
    if state.partitions:
        records.append(state_partitions_record(group.id, state.after))
    if records and store.hold_if_frozen(group, call, request):
        return
    is_told = request.member_epoch == JOINING_EPOCH or names is not None or reconciled.assigned != member.assigned
    response = wire.ShareGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=reconciled.epoch,
        heartbeat_interval_ms=group.setting(store.cluster, "heartbeat.interval.ms"),
        assignment=_assignment(reconciled) if is_told else None,
    )
    is_new = member.id not in group.members
    sent = partial(send, state=state, epoch=epoch) if state.partitions else None
    why = _reason(member.id, is_new=is_new, subscribes=after.names != member.names)
    write(store, group, records, why, (call, response), sent)
    restart_session(store, group, member.id, call)


def _identify(store: GroupStore, group: ShareGroup, request: wire.ShareGroupHeartbeatRequest) -> ShareMember:
    """Return the member of a heartbeat.

    Raises RefusedError with GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID or FENCED_MEMBER_EPOCH.
    """
    member, limit = group.members.get(request.member_id), store.settings.group_share_max_size
    if member is None and len(group.members) >= limit:
        raise full_group(group, limit)
    epoch = request.member_epoch
    if member is None:
        if epoch != JOINING_EPOCH:
            raise unknown_member(group, request.member_id)
        return ShareMember(request.member_id)
    if epoch in (JOINING_EPOCH, member.epoch) or (epoch < member.epoch and epoch == member.previous_epoch):
        return member
    smaller = f", and it does not match the previous member epoch ({member.previous_epoch})"
    raise fenced(group, member, epoch, smaller if epoch < member.epoch else "")


def _reason(member_id: str, *, is_new: bool, subscribes: bool) -> Reason:
    if is_new:
        return Reason(Cause.MEMBER_JOIN, f"Member {member_id} joined the share group.", member_id)
    if subscribes:
        return Reason(Cause.METADATA_CHANGE, f"Member {member_id} updated its subscription.", member_id)
    return Reason(Cause.TOPIC_CHANGE, "A topic of the share group, or its state, has changed.")


def _assignment(member: ShareMember) -> wire.Assignment:
    rows = tuple(
        wire.TopicPartitions(topic_id=topic, partitions=member.assigned[topic]) for topic in HashTable(member.assigned)
    )
    return wire.Assignment(topic_partitions=rows)


def _leave(store: GroupStore, group: ShareGroup, call: Call, request: wire.ShareGroupHeartbeatRequest) -> None:
    """Remove a member; its records stay locked. Raises RefusedError with UNKNOWN_MEMBER_ID."""
    member_id = request.member_id
    check_member(group, member_id, None)
    why = Reason(Cause.MEMBER_LEAVE, f"Member {member_id} left the share group.", member_id)
    response = wire.ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=LEAVING_EPOCH)
    _remove(store, group, member_id, why, (call, response))


def _remove(store: GroupStore, group: ShareGroup, member_id: str, why: Reason, answer: Answer = None) -> None:
    names = {name for each in group.members.values() if each.id != member_id for name in each.names}
    epoch = group.epoch + 1
    group.topics_seen = store.cluster.topics.version, epoch
    record = group_record(group.id, epoch, metadata_hash(store.cluster, names))
    remove(store, group, [member_id], epoch, [record], why=why, answer=answer)


def fire(store: GroupStore, group: ShareGroup, key: TimerKey) -> None:
    """End the session of a member that is silent: it is removed, and its records stay locked."""
    assert isinstance(key, SessionExpiry), f"{key} is no timer of a share group"
    assert key.member_id in group.members, f"{key.member_id} has a session in group {group.id} and is no member"
    # counts if the removal cannot be written
    group.timers.set(key, group.now + RETRY_MS)
    text = f"Member {key.member_id} fenced from the group because its session expired."
    _remove(store, group, key.member_id, Reason(Cause.SESSION_EXPIRED, text, key.member_id))
