"""Changes of a classic group: its state, its parked requests, the sessions of its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..causes import Cause
from ..facts import StateChanged, Superseded
from .group import ClassicGroup, ClassicGroupState
from .transitions import next_state

if TYPE_CHECKING:
    from ...effects import Call
    from ..causes import Reason
    from ..group_store import GroupStore
    from .group import ClassicMember


def create(store: GroupStore, now: int, group_id: str) -> ClassicGroup:
    """Create an Empty group at generation 0."""
    group = ClassicGroup(group_id, store.partition_of(group_id), store.cluster.clocks.of(group_id, now), now)
    store.add(now, group)
    return group


def transition(store: GroupStore, group: ClassicGroup, why: Reason) -> None:
    """Change the state of a group; `TRANSITIONS` decides the next state from the cause.

    Raises TransitionError if the cause does not apply to the current state.
    """
    before, after = group.state, next_state(group.state, why.cause)
    store.emit(
        StateChanged(
            group_id=group.id,
            group_now=group.now,
            before=before.value,
            after=after.value,
            generation=group.generation,
            cause=why.cause.value,
            reason=why.text,
            member_id=why.member_id,
            client_reason=why.client_reason,
        )
    )
    group.previous_state, group.state = before, after
    if why.cause is not Cause.LOADED and ClassicGroupState.DEAD not in (before, after):
        # a loaded group has the time of its record, and a removal may be undone
        group.state_changed_at = group.now
    group.earliest_offset_expiry = 0
    if group.clock.mode == "auto":
        store.cluster.clocks.auto[group.id] = None
    store.freeze_if_requested(group)


def park_join(store: GroupStore, group: ClassicGroup, member: ClassicMember, call: Call) -> None:
    """Park a JoinGroup. It supersedes an earlier one of the same member, which is never answered, as in Kafka."""
    superseded, member.parked_join = member.parked_join, call
    member.last_call = call
    if superseded is None:
        group.awaiting_join += 1
    else:
        store.emit(Superseded(superseded, group.id, member.id))


def park_sync(store: GroupStore, group: ClassicGroup, member: ClassicMember, call: Call) -> None:
    """Park a SyncGroup; it supersedes an earlier one of the same member."""
    drop_sync(store, group, member)
    member.parked_sync = call


def drop_sync(store: GroupStore, group: ClassicGroup, member: ClassicMember) -> None:
    """Discard the parked SyncGroup of a member, if any; it is never answered."""
    superseded, member.parked_sync = member.parked_sync, None
    if superseded is not None:
        store.emit(Superseded(superseded, group.id, member.id))


def restart_session(store: GroupStore, group: ClassicGroup, member: ClassicMember) -> None:
    """Restart the session timer of a member."""
    member.session_began_ms = store.node_time(group)
    if member.is_new and not store.dialect.new_member_session_begins_with_join:
        return group.timers.cancel(member.session)
    return group.timers.set(member.session, group.now + member.session_timeout_ms)
