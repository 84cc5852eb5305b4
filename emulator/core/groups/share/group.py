"""A share group: the state that its records describe. Every change is a record that is replayed.

Kafka: `ShareGroup`, and the `replay` methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING

from koordinator.wire.messages import share_group_records as wire
from koordinator.wire.values import value

from ..modern.group import ModernGroup
from .member import ShareMember
from .records import group_tombstones

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ...clock import GroupClock
    from ...data.topic import TopicState
    from ...dialect import Dialect
    from ...journal import Journal
    from ..records import CoordinatorRecord
    from .member import Partitions

SHARE = "share"
"""The kind of group in ListGroups, and its protocol type."""


class ShareGroupState(Enum):
    """The states of Kafka's `ShareGroup.ShareGroupState`: members take their target at once, so none is in between."""

    EMPTY = "Empty"
    STABLE = "Stable"


@value
class StatePartitions:
    """The partitions with state at the share coordinator: topic names and partitions by topic id."""

    initializing: Mapping[UUID, tuple[str, frozenset[int]]] = field(default_factory=dict)
    initialized: Mapping[UUID, tuple[str, frozenset[int]]] = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)


class ShareGroup(ModernGroup[ShareMember]):
    """A group of the share protocol (KIP-932): many members on the same partitions."""

    kind = SHARE

    expires = False

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now, dialect)
        self.targets: dict[str, Partitions] = {}
        self.state_partitions = StatePartitions()
        self.initializing_since: dict[UUID, int] = {}
        """The group time in ms from which a topic waits for its state at the share coordinator; in no record."""
        self.noted_state = ShareGroupState.EMPTY
        """The state in the trace."""

    @property
    def state(self) -> ShareGroupState:
        """The state: Stable with members, whatever their epochs."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether nothing is known of the group: no members, and no state at the share coordinator."""
        return not self.members and self.state_partitions == StatePartitions()

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return any(topic in member.names for member in self.members.values())

    def subscribed_topics(self, member_id: str) -> Collection[str]:
        """Return the topics that a member subscribes to."""
        return self.members[member_id].names

    def partitions_of(self, member_id: str, topics: Mapping[UUID, TopicState]) -> dict[str, list[int]]:
        """Return the partitions of a member by topic, sorted."""
        assigned = self.members[member_id].assigned
        return {topics[topic].name: sorted(assigned[topic]) for topic in assigned if topic in topics}

    @property
    def unsettled(self) -> list[str]:
        """The ids of the members that have not taken the latest target yet."""
        return [each.id for each in self.members.values() if each.epoch != self.epoch]

    def is_awaited(self, member_id: str) -> bool:
        """Return whether a member has not taken the latest target yet."""
        return self.members[member_id].epoch != self.epoch

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions: they also notice changed topics and new state."""
        is_settled = self.target_epoch == self.epoch and not self.unsettled
        return is_settled and self.has_seen_topics(topics_version) and not self.state_partitions.initializing

    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the time of a commit: no member of a share group commits."""
        del topic, dialect
        return committed.commit_timestamp

    def tombstones(self, dialect: Dialect) -> list[CoordinatorRecord]:
        """Return the records that delete the group while it is Empty."""
        del dialect
        return group_tombstones(self.id)

    def replay(self, record: CoordinatorRecord, journal: Journal) -> None:
        """Apply a record; one of a member that does not exist creates it. The journal gets what it replaces."""
        match record.key, record.value:
            case wire.ShareGroupMetadataKey(), wire.ShareGroupMetadataValue() as value:
                journal.set(self, "epoch", value.epoch)
                journal.set(self, "metadata_hash", value.metadata_hash)
            case wire.ShareGroupTargetAssignmentMetadataKey(), wire.ShareGroupTargetAssignmentMetadataValue() as target:
                journal.set(self, "target_epoch", target.assignment_epoch)
                journal.set(self, "target_time", target.assignment_timestamp)
            case wire.ShareGroupMemberMetadataKey(member_id=member_id), wire.ShareGroupMemberMetadataValue() as member:
                self._put_member(_subscribed(self._member(member_id), member), journal)
            case wire.ShareGroupMemberMetadataKey(member_id=member_id), None:
                journal.pop(self.members, member_id)
                self._order.remove(member_id, journal)
            case (
                wire.ShareGroupTargetAssignmentMemberKey(member_id=member_id),
                wire.ShareGroupTargetAssignmentMemberValue() as value,
            ):
                journal.put(self.targets, member_id, _partitions(value.topic_partitions))
            case wire.ShareGroupTargetAssignmentMemberKey(member_id=member_id), None:
                journal.pop(self.targets, member_id)
            case (
                wire.ShareGroupCurrentMemberAssignmentKey(member_id=member_id),
                wire.ShareGroupCurrentMemberAssignmentValue() as value,
            ):
                self._put_member(_reconciled(self._member(member_id), value), journal)
            case wire.ShareGroupStatePartitionMetadataKey(), value:
                self._replay_state_partitions(value, journal)
            case _:
                pass

    def _replay_state_partitions(self, value: object, journal: Journal) -> None:
        after = StatePartitions()
        if isinstance(value, wire.ShareGroupStatePartitionMetadataValue):
            after = StatePartitions(
                initializing=_state_topics(value.initializing_topics),
                initialized=_state_topics(value.initialized_topics),
                deleting={row.topic_id: row.topic_name for row in value.deleting_topics},
            )
        before = self.state_partitions.initializing
        journal.set(self, "state_partitions", after)
        since = {
            topic: self.initializing_since.get(topic, self.now) if before.get(topic) == row else self.now
            for topic, row in after.initializing.items()
        }
        journal.set(self, "initializing_since", since)

    def _member(self, member_id: str) -> ShareMember:
        return self.members.get(member_id) or ShareMember(member_id)

    def _put_member(self, member: ShareMember, journal: Journal) -> None:
        journal.put(self.members, member.id, member)
        self._order.put(member.id, journal)


def _subscribed(member: ShareMember, value: wire.ShareGroupMemberMetadataValue) -> ShareMember:
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=tuple(value.subscribed_topic_names),
    )


def _reconciled(member: ShareMember, value: wire.ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=_partitions(value.assigned_partitions),
    )


def _partitions(rows: Iterable[wire.TopicPartition | wire.TopicPartitions]) -> Partitions:
    return {row.topic_id: tuple(row.partitions) for row in rows}


def _state_topics(rows: Iterable[wire.TopicPartitionsInfo]) -> dict[UUID, tuple[str, frozenset[int]]]:
    return {row.topic_id: (row.topic_name, frozenset(row.partitions)) for row in rows}
