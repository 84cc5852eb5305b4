"""Test-only overrides of a group, traced like ordinary transitions.

Each raises ValueError, and changes nothing, if the group is in no state for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import OffsetCommitValue
from koordinator.wire.primitives import ZERO_UUID

from .groups import offsets
from .groups.causes import Cause, Reason
from .timers import PendingMemberExpiry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .groups.classic.group import ClassicGroup
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
    store.kind_of(group).force_rebalance(store, group, Reason(Cause.FORCED, reason))


def expire_session(store: GroupStore, group: BaseGroup, member: BaseMember) -> None:
    """Expire the session of a member now. Raises ValueError while it is parked: Kafka would not expire it."""
    require_not_frozen(group)
    require_unparked(group, member)
    store.kind_of(group).fire(store, group, member.session)


def require_unparked(group: BaseGroup, member: BaseMember) -> None:
    """Raise ValueError if a member's session cannot expire because a request of it is parked."""
    if member.session_held_by is not None:
        raise ValueError(
            f"the {member.session_held_by} of member {member.id!r} of group {group.id!r} is parked: "
            "its session does not end until that is answered"
        )


def set_offsets(store: GroupStore, group: BaseGroup, positions: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets of existing partitions without a member."""
    topics, with_ids = store.cluster.topics, store.dialect.commits_by_name_remember_topic_ids
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
        store.kind_of(group).thaw(store, group)


def spare_sessions(group: BaseGroup, members: Iterable[BaseMember], until: int) -> None:
    """Restart the running session timers of members at group time `until`, as their heartbeats would."""
    for member in members:
        if member.session in group.timers:
            group.timers.set(member.session, until + member.running_session_ms)


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
