"""Test-only overrides of a group, traced like ordinary transitions.

Each raises ValueError, and changes nothing, if the group is in no state for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import OffsetCommitValue
from koordinator.wire.primitives import ZERO_UUID

from .groups import offsets
from .groups.causes import Cause, Reason
from .groups.classic import rebalance
from .groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from .groups.classic.join import NEW_MEMBER_JOIN_TIMEOUT_MS
from .groups.consumer import membership
from .groups.consumer.changes import write
from .groups.consumer.group import ConsumerGroup
from .groups.consumer.records import group_record
from .timers import PendingMemberExpiry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .groups.group import BaseGroup, BaseMember
    from .groups.group_store import GroupStore
    from .timers import TimerKey

NO_CONNECTION = 0
"""The connection of internal calls, whose responses are dropped; clients' connections start at 1."""

OFFSETS_PER_BATCH = 1000
"""The offsets in one record batch, which then is smaller than `message.max.bytes`, however long the names are."""


def require_not_frozen(group: BaseGroup) -> None:
    """Raise ValueError if the group is frozen."""
    if group.is_frozen:
        raise ValueError(f"group {group.id!r} is frozen in {group.state_name}: thaw it first")


def force_rebalance(store: GroupStore, group: BaseGroup, reason: str) -> None:
    """Start a join phase for the given reason; raise the epoch of a consumer group."""
    require_not_frozen(group)
    if isinstance(group, ConsumerGroup):
        if not group.members:
            raise ValueError(f"group {group.id!r} is Empty: only a group with members can be forced to rebalance")
        return write(
            store, group, [group_record(group.id, group.epoch + 1, group.metadata_hash)], Reason(Cause.FORCED, reason)
        )
    assert isinstance(group, ClassicGroup)
    if group.state not in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}:
        raise ValueError(
            f"group {group.id!r} is {group.state.value}: only a Stable or CompletingRebalance group can be forced to"
            " rebalance"
        )
    return rebalance.prepare(store, group, Reason(Cause.FORCED, reason))


def expire_session(store: GroupStore, group: BaseGroup, member: BaseMember) -> None:
    """Expire the session of a member now. Raises ValueError while it is parked: Kafka would not expire it."""
    require_not_frozen(group)
    require_unparked(group, member)
    if isinstance(group, ConsumerGroup):
        membership.fire(store, group, member.session)
    elif isinstance(group, ClassicGroup):
        rebalance.expire_session(store, group, member.id)


def require_unparked(group: BaseGroup, member: BaseMember) -> None:
    """Raise ValueError if a member's session cannot expire because a request of it is parked."""
    if isinstance(member, ClassicMember) and member.is_parked and not member.is_new:
        parked = "JoinGroup" if member.parked_join is not None else "SyncGroup"
        raise ValueError(
            f"the {parked} of member {member.id!r} of group {group.id!r} is parked: "
            "its session does not end until that is answered"
        )


def set_offsets(store: GroupStore, group: BaseGroup, positions: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets of existing partitions without a member."""
    topics, with_ids = store.cluster.topics, store.dialect.commits_remember_topic_ids
    every = [
        (
            (topic, partition),
            OffsetCommitValue(
                offset=offset,
                leader_epoch=-1,
                metadata="",
                commit_timestamp=group.now,
                topic_id=topics[topic].topic_id if with_ids else ZERO_UUID,
            ),
        )
        for (topic, partition), offset in positions.items()
    ]
    for first in range(0, len(every), OFFSETS_PER_BATCH):
        offsets.write(store, group, every[first : first + OFFSETS_PER_BATCH], [])


def freeze(store: GroupStore, group: BaseGroup) -> None:
    """Freeze a group in its state; do nothing if it is frozen."""
    if not group.is_frozen:
        store.freeze(group)


def thaw(store: GroupStore, group: BaseGroup) -> None:
    """Thaw the group; a join phase in which no member is missing ends at once."""
    if group.is_frozen:
        store.thaw(group)
        if isinstance(group, ClassicGroup):
            rebalance.complete_if_all_joined(store, group)


def spare_sessions(group: BaseGroup, members: Iterable[BaseMember], until: int) -> None:
    """Restart the running session timers of members at group time `until`, as their heartbeats would."""
    for member in members:
        if member.session in group.timers:
            waits_to_join = isinstance(member, ClassicMember) and member.is_new and member.parked_join is not None
            timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if waits_to_join else member.session_timeout_ms
            group.timers.set(member.session, until + timeout_ms)


def extend_phases(group: BaseGroup, phases: Iterable[TimerKey], until: int) -> None:
    """Restart join or sync phases, or steps of members, at group time `until`."""
    for phase in phases:
        member = group.members.get(getattr(phase, "member_id", ""))
        timeout_ms = group.rebalance_timeout_ms if member is None else member.rebalance_timeout_ms
        group.timers.set(phase, until + max(timeout_ms, 1))


def postpone_expiries(group: ClassicGroup, ms: int, due: TimerKey) -> None:
    """Postpone the session and pending-member timers, except `due`, before the clock skips `ms`."""
    sessions: list[TimerKey] = [member.session for member in group.members.values()]
    for key in [*sessions, *map(PendingMemberExpiry, group.pending_members)]:
        if key != due and key in group.timers:
            group.timers.set(key, group.timers[key] + ms)
