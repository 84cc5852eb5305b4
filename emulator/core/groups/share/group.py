"""A share group: the state that its records describe. Every change is a record that is replayed.

Kafka: `ShareGroup`, and the `replay` methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.messages import share_group_records as wire
from koordinator.wire.values import value

from ..modern.group import GroupState, ModernGroup
from .assignor import NAME
from .member import Partitions, ShareMember
from .records import RECORD_TYPES, group_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ....config.settings import Settings
    from ...clock import GroupClock
    from ...dialect import Dialect
    from ...journal import Journal
    from ..records import CoordinatorRecord

SHARE = "share"
"""The kind of group in ListGroups, and its protocol type."""


@value
class StatePartitions:
    """The partitions with state at the share coordinator: topic names and partitions by topic id."""

    initializing: Mapping[UUID, tuple[str, frozenset[int]]] = field(default_factory=dict)
    initialized: Mapping[UUID, tuple[str, frozenset[int]]] = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)


class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """A group of the share protocol (KIP-932): many members on the same partitions."""

    kind = SHARE

    expires = False
    has_steps = False
    record_types = RECORD_TYPES

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now, dialect)
        self.state_partitions = StatePartitions()
        self.has_state_record = False
        """Whether there is a record of state partitions, even of none."""
        self.initializing_since: dict[UUID, int] = {}
        """The group time in ms from which a topic waits for its state at the share coordinator; in no record."""

    @property
    def state(self) -> GroupState:
        """The state: Stable with members, whatever their epochs."""
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether nothing is known of the group: no members, and no state at the share coordinator."""
        return not self.members and self.state_partitions == StatePartitions()

    def is_settled(self, member: ShareMember) -> bool:
        """Return whether a member has taken the latest target."""
        return member.epoch == self.epoch

    def assignor(self, settings: Settings) -> str:
        """Return the name of the only assignor."""
        del settings
        return NAME

    def epoch_record(self, epoch: int) -> CoordinatorRecord:
        """Return the record of an epoch that rises for no other change."""
        return group_record(self.id, epoch, self.metadata_hash)

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions: they also notice changed topics and new state."""
        is_settled = self.target_epoch == self.epoch and not self.unsettled
        return is_settled and self.has_seen_topics(topics_version) and not self.state_partitions.initializing

    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the time of a commit: no member of a share group commits."""
        del topic, dialect
        return committed.commit_timestamp

    def _replay_further(self, record: CoordinatorRecord, journal: Journal) -> None:
        if not isinstance(record.key, wire.ShareGroupStatePartitionMetadataKey):
            return
        value, after = record.value, StatePartitions()
        if isinstance(value, wire.ShareGroupStatePartitionMetadataValue):
            after = StatePartitions(
                initializing=_state_topics(value.initializing_topics),
                initialized=_state_topics(value.initialized_topics),
                deleting={row.topic_id: row.topic_name for row in value.deleting_topics},
            )
        before = self.state_partitions.initializing
        journal.set(self, "state_partitions", after)
        journal.set(self, "has_state_record", value is not None)
        since = {
            topic: self.initializing_since.get(topic, self.now) if before.get(topic) == row else self.now
            for topic, row in after.initializing.items()
        }
        journal.set(self, "initializing_since", since)


def _state_topics(rows: Iterable[wire.TopicPartitionsInfo]) -> dict[UUID, tuple[str, frozenset[int]]]:
    return {row.topic_id: (row.topic_name, frozenset(row.partitions)) for row in rows}
