"""What a test's hand does to a group, where no request would do; in the trace as if it had come about by itself.

Each raises ValueError for what cannot be, with nothing changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.offset_commit import OffsetCommitRequest
from koordinator.wire.primitives import ZERO_UUID

from .effects import Call
from .groups.classic import rebalance
from .groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember, CommittedOffset
from .groups.group_records import offset_record
from .groups.group_store import GroupStore, Reason
from .groups.pending_writes import OffsetsCommitted

if TYPE_CHECKING:
    from collections.abc import Mapping

NOBODY = 0
"""The connection of a process that is not there: answers to it go nowhere. Those of clients begin with 1."""


def refuse_frozen(group: ClassicGroup) -> None:
    """ValueError if the group is frozen: what would take it out of its state waits until it is thawed."""
    if group.is_frozen:
        raise ValueError(f"group {group.id!r} is frozen in {group.state.value}: thaw it first")


def force_rebalance(store: GroupStore, group: ClassicGroup, reason: str) -> None:
    """Begin a join phase, for this reason."""
    refuse_frozen(group)
    if group.state not in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}:
        raise ValueError(
            f"group {group.id!r} is {group.state.value}: only one that is Stable or CompletingRebalance can be made to"
            " rebalance"
        )
    rebalance.prepare(store, group, Reason("forced", reason))


def end_session(store: GroupStore, group: ClassicGroup, member: ClassicMember) -> None:
    """The session of a member ends, now. ValueError while it waits for an answer: that is not silence to Kafka."""
    refuse_frozen(group)
    refuse_waiting(group, member)
    rebalance.expire_session(store, group, member.id)


def refuse_waiting(group: ClassicGroup, member: ClassicMember) -> None:
    """ValueError if a member's session cannot end because it waits for an answer."""
    waits_for = "JoinGroup" if member.joining is not None else "SyncGroup" if member.syncing is not None else None
    if waits_for is not None and not member.is_new:
        raise ValueError(
            f"member {member.id!r} of group {group.id!r} waits for the answer to its {waits_for}: "
            "its session does not end until it has that"
        )


def set_offsets(store: GroupStore, group: ClassicGroup, positions: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets, whoever is in the group. The partitions exist."""
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
    """The group stays in its state from now on; nothing happens if it does already."""
    if not group.is_frozen:
        store.freeze(group)


def thaw(store: GroupStore, group: ClassicGroup) -> None:
    """The group goes on: a join phase in which nobody is missing ends at once."""
    if group.is_frozen:
        store.thaw(group)
        rebalance.complete_if_all_joined(store, group)
