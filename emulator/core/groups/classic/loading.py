"""How a classic group comes from the log, and how it ends."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataValue
from koordinator.wire.primitives import InvalidLength

from ..causes import Cause, Reason
from ..facts import MemberChanged
from . import rebalance
from .changes import create, restart_session, transition
from .group import ClassicGroup, ClassicGroupState, ClassicMember

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.wire.messages.offsets_topic import MemberMetadata

    from ..group_store import GroupStore
    from ..records import CoordinatorRecord


def load(store: GroupStore, now: int, group_id: str, records: Sequence[CoordinatorRecord]) -> ClassicGroup:
    """Create a group from its record, if there is one. Every member gets a full session timeout.

    A group larger than `group.max.size` rebalances at once, and only that many members can rejoin (KIP-389).
    """
    group = create(store, now, group_id)
    group.stored = True
    if records and isinstance(records[-1].value, GroupMetadataValue):
        _restore(store, group, records[-1].value)
    return group


def _restore(store: GroupStore, group: ClassicGroup, value: GroupMetadataValue) -> None:
    group.protocol_type = value.protocol_type or None
    # records written by a client may name a member twice, or a leader that is no member
    for stored in {each.member_id: each for each in value.members}.values():
        group.add(_member(stored, value))
    group.generation = value.generation
    if value.leader in group.members:
        group.leader_id = value.leader
    with suppress(InvalidLength):
        # a client wrote it: a coordinator's own members have subscriptions that it can read
        group.use_protocol(value.protocol)
    if value.current_state_timestamp >= 0:
        group.state_changed_at = value.current_state_timestamp
    if not group.members:
        return
    loaded = f"Loaded group {group.id} with {len(group.members)} members."
    transition(store, group, Reason(Cause.LOADED, loaded))
    for member in group.members.values():
        change = (member.id, member.instance_id, "loaded", Cause.LOADED.value, loaded, member.assignment)
        store.emit(MemberChanged(group.id, group.now, *change))
        restart_session(store, group, member)
    size, highest = len(group.members), store.settings.group_max_size
    if size > highest:
        reason = (
            f"Freshly-loaded group {group.id} (size {size}) is over capacity {highest}. "
            "Rebalancing in order to give a chance for consumers to commit offsets"
        )
        rebalance.prepare(store, group, Reason(Cause.OVER_CAPACITY, reason))


def _member(stored: MemberMetadata, group: GroupMetadataValue) -> ClassicMember:
    session_timeout_ms = stored.session_timeout
    return ClassicMember(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=session_timeout_ms,
        # records of version 0 lack it: before KIP-62 one timeout served both purposes
        rebalance_timeout_ms=stored.rebalance_timeout if stored.rebalance_timeout >= 0 else session_timeout_ms,
        protocol_type=group.protocol_type,
        protocols=((group.protocol or "", stored.subscription),),
        assignment=stored.assignment,
    )


def unload(store: GroupStore, group: ClassicGroup) -> None:
    """Fail the parked requests with NOT_COORDINATOR."""
    for member in group.members.values():
        store.reply(group.take_join(member), rebalance.join_error(Error.NOT_COORDINATOR, member.id))
        call, member.parked_sync = member.parked_sync, None
        store.reply(call, rebalance.sync_error(Error.NOT_COORDINATOR))


def restore(store: GroupStore, group: ClassicGroup, reason: str) -> None:
    """Make a removed group Empty again; a bug may have ended its removal before it began."""
    if group.state is ClassicGroupState.DEAD:
        transition(store, group, Reason(Cause.STORE_ERROR, reason))
