"""Test-only overrides of a group, traced like ordinary transitions.

Each raises ValueError, and changes nothing, if the group is in no state for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.offset_commit import OffsetCommitRequest
from koordinator.wire.primitives import ZERO_UUID

from .effects import Call
from .groups.classic import rebalance
from .groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember, CommittedOffset
from .groups.classic.transitions import Cause
from .groups.group_records import offset_record
from .groups.group_store import GroupStore, Reason
from .groups.pending_writes import OffsetsCommitted

if TYPE_CHECKING:
    from collections.abc import Mapping

NOBODY = 0
"""The connection of internal calls, whose responses are dropped; clients' connections start at 1."""


def refuse_frozen(group: ClassicGroup) -> None:
    """Raise ValueError if the group is frozen."""
    if group.is_frozen:
        raise ValueError(f"group {group.id!r} is frozen in {group.state.value}: thaw it first")


def force_rebalance(store: GroupStore, group: ClassicGroup, reason: str) -> None:
    """Start a join phase for the given reason."""
    refuse_frozen(group)
    if group.state not in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}:
        raise ValueError(
            f"group {group.id!r} is {group.state.value}: only one that is Stable or CompletingRebalance can be made to"
            " rebalance"
        )
    rebalance.prepare(store, group, Reason(Cause.FORCED, reason))


def end_session(store: GroupStore, group: ClassicGroup, member: ClassicMember) -> None:
    """Expire the session of a member now. Raises ValueError while it is parked: Kafka would not expire it."""
    refuse_frozen(group)
    refuse_waiting(group, member)
    rebalance.expire_session(store, group, member.id)


def refuse_waiting(group: ClassicGroup, member: ClassicMember) -> None:
    """Raise ValueError if a member's session cannot expire because a request of it is parked."""
    waits_for = "JoinGroup" if member.joining is not None else "SyncGroup" if member.syncing is not None else None
    if waits_for is not None and not member.is_new:
        raise ValueError(
            f"member {member.id!r} of group {group.id!r} waits for the answer to its {waits_for}: "
            "its session does not end until it has that"
        )


def set_offsets(store: GroupStore, group: ClassicGroup, positions: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets of existing partitions without a member."""
    topics, named = store.cluster.topics, store.dialect.commits_remember_topic_ids
    committed = {
        (topic, partition): CommittedOffset(
            offset=position,
            leader_epoch=-1,
            metadata="",
            commit_timestamp=group.now,
            topic_id=topics[topic].topic_id if named else ZERO_UUID,
        )
        for (topic, partition), position in positions.items()
    }
    group.begin_commit(committed)
    records = [offset_record(group, topic, partition, each) for (topic, partition), each in committed.items()]
    nobody = Call(NOBODY, 0, ApiKey.OFFSET_COMMIT, 1, "", "")
    store.append(group.id, records, OffsetsCommitted(group, nobody, OffsetCommitRequest(), committed, {}))


def freeze(store: GroupStore, group: ClassicGroup) -> None:
    """Freeze the group in its state; do nothing if it is frozen."""
    if not group.is_frozen:
        store.freeze(group)


def thaw(store: GroupStore, group: ClassicGroup) -> None:
    """Thaw the group; a join phase in which no member is missing ends at once."""
    if group.is_frozen:
        store.thaw(group)
        rebalance.complete_if_all_joined(store, group)
