"""The rebalance: from the first JoinGroup of a join phase until every member has synced or is removed.

A join phase (PreparingRebalance) ends when every member has a JoinGroup parked, or at its timeout. Then the next
generation is formed, and CompletingRebalance waits for the leader's assignment. Every removal of a member passes
through this module, because it may start or end a join phase. Kafka: `GroupMetadataManager.prepareRebalance`,
`completeClassicGroupJoin`, `tryCompleteInitialRebalanceElseSchedule`, `expirePendingSync`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from koordinator.wire.messages.sync_group import SyncGroupResponse
from koordinator.wire.primitives import InvalidLength

from ...timers import InitialDelay, PendingMemberExpiry, PendingSyncExpiry, RebalanceTimeout, SessionExpiry
from ..causes import Cause, Reason
from ..commit import GroupWrite
from .changes import drop_sync, restart_session, transition
from .group import ClassicGroup, ClassicGroupState, ClassicMember
from .records import group_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...timers import TimerKey
    from ..group_store import GroupStore

ALL_JOINED = "everybody has joined"
TIMED_OUT = "the rebalance timeout has passed"


def prepare_or_complete(store: GroupStore, group: ClassicGroup, why: Reason) -> None:
    """Start a join phase, or end the current one if every member has joined."""
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        complete_if_all_joined(store, group)
    else:
        prepare(store, group, why)


def prepare(store: GroupStore, group: ClassicGroup, why: Reason) -> None:
    """Start a join phase; an Empty group first waits for more members (KIP-134)."""
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        fail_parked_syncs(store, group, Error.REBALANCE_IN_PROGRESS)
    group.pending_sync_members.clear()
    group.timers.cancel(PendingSyncExpiry(group.generation))
    initial = group.state is ClassicGroupState.EMPTY
    transition(store, group, why)
    if initial:
        delay = store.settings.group_initial_rebalance_delay_ms
        remaining = max(group.rebalance_timeout_ms - delay, 0)
        group.timers.set(InitialDelay(delay, remaining), group.now + delay)
    elif group.all_joined:
        complete_join(store, group, ALL_JOINED)
    else:
        await_rejoins(group)


def await_rejoins(group: ClassicGroup) -> None:
    """Limit the join phase to the group's rebalance timeout; at least 1 ms, because clients may send 0."""
    group.timers.set(RebalanceTimeout(), group.now + max(group.rebalance_timeout_ms, 1))


def complete_if_all_joined(store: GroupStore, group: ClassicGroup) -> None:
    """End the join phase if no member is missing. An initial delay goes on: it waits for unknown members."""
    if group.previous_state is not ClassicGroupState.EMPTY:
        _complete_early(store, group)


def complete_after_expiry(store: GroupStore, group: ClassicGroup) -> None:
    """End the join phase if a timer removed the last missing member; this may end an initial delay as well."""
    if group.previous_state is not ClassicGroupState.EMPTY or store.dialect.expiry_ends_initial_delay:
        _complete_early(store, group)


def _complete_early(store: GroupStore, group: ClassicGroup) -> None:
    if group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:
        complete_join(store, group, ALL_JOINED)


def expire_initial_delay(store: GroupStore, group: ClassicGroup, timer: InitialDelay) -> None:
    """Extend the initial delay if members joined during it, at most by the rebalance timeout in all (KIP-134)."""
    if group.new_member_added and timer.remaining_ms != 0:
        group.new_member_added = False
        delay = min(store.settings.group_initial_rebalance_delay_ms, timer.remaining_ms)
        remaining = max(timer.remaining_ms - timer.delay_ms, 0)
        group.timers.set(InitialDelay(delay, remaining), group.now + delay)
    else:
        complete_join(store, group, "the initial delay has passed")


def complete_join(store: GroupStore, group: ClassicGroup, reason: str) -> None:
    """End the join phase: remove dynamic members that did not rejoin, and give the others the next generation.

    Raises InvalidLength if a subscription makes Kafka's coordinator fail.
    """
    if group.is_frozen or group.join_phase_failed:
        return
    for timer in [key for key in group.timers if isinstance(key, InitialDelay | RebalanceTimeout)]:
        group.timers.cancel(timer)
    missing = [member for member in group.members.values() if member.parked_join is None and not member.is_static]
    if missing:
        names = ", ".join(member.id for member in missing)
        why = Reason(Cause.JOIN_TIMEOUT, f"Group {group.id} removed dynamic members who haven't joined: [{names}]")
        for member in missing:
            group.remove(member.id)
            store.member_changed(group, member, "removed", why)
    if group.members and not elect_joined_leader(group):
        # only static members are left, and none has rejoined: keep waiting
        await_rejoins(group)
        return
    try:
        group.form_generation(store.dialect.vote_order)
    except InvalidLength:
        if store.dialect.fails_at_invalid_lengths:
            # the group stays in its join phase: what caused it to end fails, and parked joins stay parked
            group.join_phase_failed = not store.dialect.failed_join_phase_may_end
            raise
        group.forget_subscriptions()
    if not group.members:
        why = Reason(Cause.EMPTIED, f"Group {group.id} with generation {group.generation} is now empty.")
        transition(store, group, why)
        store.append(GroupWrite(group, [group_record(group, {})]))
        return
    stabilized = f"Stabilized group {group.id} generation {group.generation} with {len(group.members)} members."
    transition(store, group, Reason(Cause.JOINED, f"{stabilized} ({reason})"))
    members = member_list(group)
    for member in group.members.values():
        call = group.take_join(member)
        store.reply(call, join_response(group, member, members))
        restart_session(store, group, member)
        member.is_new = False
        group.pending_sync_members[member.id] = None
    if store.dialect.pending_sync_expires:
        timeout = max(group.rebalance_timeout_ms, 1)
        group.timers.set(PendingSyncExpiry(group.generation), group.now + timeout)


def elect_joined_leader(group: ClassicGroup) -> bool:
    """Keep the leader if it rejoined, else take the first member that did; return False if there is none."""
    leader = group.leader
    if leader is None or leader.parked_join is None:
        joined_id = next((member.id for member in group.members.values() if member.parked_join is not None), None)
        if joined_id is None:
            return False
        group.leader_id = joined_id
    return True


def member_list(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    """Return the members with their metadata for the selected protocol; only the leader receives them."""
    return tuple(
        JoinGroupResponseMember(
            member_id=member.id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    )


def join_response(
    group: ClassicGroup, member: ClassicMember, members: Iterable[JoinGroupResponseMember] | None = None
) -> JoinGroupResponse:
    """Return a member's successful JoinGroup response; only the leader gets the members."""
    is_leader = member.id == group.leader_id
    listed = (member_list(group) if members is None else tuple(members)) if is_leader else ()
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.id,
        members=listed,
    )


def join_error(error: Error, member_id: str) -> JoinGroupResponse:
    """Return a failed JoinGroup response: the error and, where Kafka echoes it, the member id."""
    return JoinGroupResponse(error_code=error, member_id=member_id)


def sync_error(error: Error) -> SyncGroupResponse:
    """Return a failed SyncGroup response: no protocol, an empty assignment."""
    return SyncGroupResponse(error_code=error)


def fail_parked_syncs(store: GroupStore, group: ClassicGroup, error: Error) -> None:
    """Erase the assignments of this generation and fail every parked SyncGroup."""
    for member in group.members.values():
        member.assignment = b""
        reply_to_sync(store, group, member, sync_error(error))


def reply_to_sync(store: GroupStore, group: ClassicGroup, member: ClassicMember, response: SyncGroupResponse) -> None:
    """Answer a member's parked SyncGroup, if any, and restart its session."""
    call, member.parked_sync = member.parked_sync, None
    if call is not None:
        store.reply(call, response)
        restart_session(store, group, member)


def expire_pending_sync(store: GroupStore, group: ClassicGroup) -> None:
    """Remove the members that have not synced in this generation, static ones included (KAFKA-12890).

    The timer is cancelled when every member has synced, and when the generation ends.
    """
    names = ", ".join(group.pending_sync_members)
    why = Reason(Cause.SYNC_TIMEOUT, f"Removing [{names}] on pending sync request expiration")
    for member_id in list(group.pending_sync_members):
        member = group.remove(member_id)
        if member is not None:
            store.member_changed(group, member, "removed", why)
    prepare(store, group, why)


def clear_pending_sync(group: ClassicGroup, member: ClassicMember) -> None:
    """Remove a member from the pending-sync set; cancel the sync timer with the last one."""
    group.pending_sync_members.pop(member.id, None)
    if not group.pending_sync_members:
        group.timers.cancel(PendingSyncExpiry(group.generation))


def expire_session(store: GroupStore, group: ClassicGroup, member_id: str) -> None:
    """Remove a member after its session timeout, unless it is parked in JoinGroup or SyncGroup."""
    member = group.members.get(member_id)
    if member is None or member.session_held_by is not None:
        return
    why = Reason(Cause.SESSION_EXPIRED, f"removing member {member_id} on heartbeat expiration.", member_id)
    remove_member(store, group, member, why)
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        complete_after_expiry(store, group)
    else:
        prepare(store, group, why)


def expire_pending_member(store: GroupStore, group: ClassicGroup, member_id: str) -> None:
    """Remove an id handed out with MEMBER_ID_REQUIRED that was not used in time (KIP-394)."""
    group.remove(member_id)
    complete_after_expiry(store, group)


def remove_member(store: GroupStore, group: ClassicGroup, member: ClassicMember, why: Reason) -> None:
    """Remove a member. Its parked JoinGroup gets UNKNOWN_MEMBER_ID, so that the client starts over.

    Its parked SyncGroup is never answered, as in Kafka.
    """
    store.reply(group.take_join(member), join_error(Error.UNKNOWN_MEMBER_ID, ""))
    drop_sync(store, group, member)
    group.remove(member.id)
    store.member_changed(group, member, "removed", why)


def fire(store: GroupStore, group: ClassicGroup, key: TimerKey) -> None:
    """Act on a timer that is due."""
    match key:
        case SessionExpiry(member_id):
            expire_session(store, group, member_id)
        case PendingMemberExpiry(member_id):
            expire_pending_member(store, group, member_id)
        case InitialDelay():
            expire_initial_delay(store, group, key)
        case RebalanceTimeout():
            complete_join(store, group, TIMED_OUT)
        case PendingSyncExpiry():
            expire_pending_sync(store, group)
        case _:
            raise AssertionError(f"a classic group has no {key}")
