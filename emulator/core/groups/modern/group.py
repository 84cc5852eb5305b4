"""The part that groups of the newer protocols share: epochs, members in Kafka's order, and the topics seen.

It is the state that records describe. Every change is a record that is replayed. Kafka: `ModernGroup`, and the `replay`
methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ...data.group_configs import group_value
from ...java.hash_tables import TimelineTable
from ...journal import JournaledTable
from ...timers import RevocationTimeout, SessionExpiry
from ..group import BaseGroup
from .member import ModernMember

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ....config.settings import Settings
    from ...clock import GroupClock
    from ...cluster import ClusterState
    from ...data.topic import TopicState
    from ...dialect import Dialect
    from ...journal import Journal
    from ...timers import TimerKey
    from ..records import CoordinatorRecord
    from .records import RecordTypes

M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")

NO_TOPICS_SEEN = -1, 0


class GroupState(Enum):
    """The states of Kafka's `ConsumerGroupState`, `ShareGroupState` and `StreamsGroupState`.

    Members of share groups take their target at once: such a group is Empty or Stable. Only streams groups
    are NotReady.
    """

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ModernGroup(BaseGroup, Generic[M, T]):
    """A consumer, share or streams group.

    `epoch` rises whenever another target has to be computed; `target_epoch` is that of the latest target, and
    `target_time` the group time in ms at which it was computed, or 0. `topics_seen` is the version of the cluster's
    topics for which an epoch was computed, -1 for none, and that epoch; a failed write takes only the epoch back.
    """

    record_types: ClassVar[RecordTypes]

    member_timers: ClassVar[tuple[Callable[[str], TimerKey], ...]] = (SessionExpiry, RevocationTimeout)
    """The kinds of timers that a member has."""

    has_steps: ClassVar[bool] = True
    """Whether a member may need several steps to its target. Then the trace has each step and each target."""

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now)
        self.epoch, self.target_epoch = self.first_epoch(dialect), dialect.first_group_epoch
        self.metadata_hash = 0
        self.topics_seen = NO_TOPICS_SEEN
        self.target_time = 0
        self.members: JournaledTable[str, M] = JournaledTable()
        self.static_members: JournaledTable[str, str] = JournaledTable()
        self.targets: JournaledTable[str, T] = JournaledTable()
        self.origin: tuple[BaseGroup, tuple[CoordinatorRecord, ...]] | None = None
        """The classic group in whose place this one is, and the records of the conversion, until the first request
        writes them before its own."""
        self.noted_state = GroupState.EMPTY
        """The state in the trace."""
        self._order = TimelineTable()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} {self.state_name} epoch={self.epoch} members={len(self.members)}>"

    @staticmethod
    def first_epoch(dialect: Dialect) -> int:
        """Return the epoch of a group without records."""
        return dialect.first_group_epoch

    @property
    def generation(self) -> int:
        """The epoch of the target."""
        return self.target_epoch

    @property
    def state(self) -> GroupState:
        """The state, which follows from the epochs and the members (`maybeUpdateGroupState`)."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if all(map(self.is_settled, self.members.values())) else GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        """The state, as ListGroups shows it."""
        return str(self.state.value)

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type, as ListGroups shows it."""
        return self.kind

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def is_unused(self) -> bool:
        """Whether the group has no members and no offsets; commits may be in flight."""
        return not (self.members or self.offsets or self.pending_offsets)

    def setting(self, cluster: ClusterState, name: str) -> int:
        """Return a number that the group is configured with, such as `session.timeout.ms`."""
        return group_value(cluster, self.id, f"{self.kind}.{name}")

    @abstractmethod
    def assignor(self, settings: Settings) -> str:
        """Return the name of the assignor of the latest target."""

    def named_partitions(self, cluster: ClusterState, held: Any) -> Mapping[str, tuple[int, ...]]:  # noqa: ANN401 - a target or an assignment
        """Return partitions by topic, sorted, without topics that do not exist."""
        topics = cluster.topics.by_id
        return {topics[topic].name: tuple(sorted(held[topic])) for topic in held if topic in topics}

    @abstractmethod
    def epoch_record(self, epoch: int) -> CoordinatorRecord:
        """Return the record of an epoch that rises for no other change."""

    # -- members ---------------------------------------------------------------------------------------------

    def ordered_members(self) -> list[M]:
        """Return the members in the order of Kafka's table."""
        return [self.members[member_id] for member_id in self._order]

    def put_in_order(self, member_ids: Iterable[str]) -> None:
        """Put the members into a new table, whose order follows from this one."""
        self._order = TimelineTable(member_ids)

    def owner_of(self, instance_id: str) -> str | None:
        """Return the member id of an instance id, or None."""
        return self.static_members.get(instance_id)

    def is_settled(self, member: M) -> bool:
        """Return whether a member has its target."""
        return member.is_settled(self.target_epoch)

    @property
    def unsettled(self) -> list[str]:
        """The ids of the members without their target."""
        return [each.id for each in self.members.values() if not self.is_settled(each)]

    def is_awaited(self, member_id: str) -> bool:
        """Return whether a member has not reached its target yet."""
        return not self.is_settled(self.members[member_id])

    # -- topics ----------------------------------------------------------------------------------------------

    def topics_of(self, member: M) -> Collection[str]:
        """Return the topics that a member subscribes to."""
        return member.names

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return any(topic in self.topics_of(member) for member in self.members.values())

    def subscribed_topics(self, member_id: str) -> Collection[str]:
        """Return the topics that a member subscribes to."""
        return self.topics_of(self.members[member_id])

    def partitions_of(self, member_id: str, topics: Mapping[UUID, TopicState]) -> dict[str, list[int]]:
        """Return the assigned partitions of a member by topic, sorted."""
        assigned = getattr(self.members[member_id], "assigned")  # noqa: B009 - kinds differ in its type
        return {topics[topic].name: sorted(assigned[topic]) for topic in assigned if topic in topics}

    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the time of a commit, unless a member subscribes to its topic."""
        del dialect
        return None if self.is_subscribed(topic) else committed.commit_timestamp

    def has_seen_topics(self, version: int) -> bool:
        """Return whether the epoch takes this version of the cluster's topics into account.

        Not if the records of that epoch were not applied, or taken back (Kafka: `ModernGroup.hasMetadataExpired`).
        """
        seen, epoch = self.topics_seen
        return seen == version and self.epoch >= epoch

    def next_unseeing_epoch(self, version: int) -> int:
        """Return the next epoch, for a change that does not look at the topics.

        It must not pass for the same epoch of a write that looked at them, and was taken back.
        """
        if not self.has_seen_topics(version):
            self.topics_seen = NO_TOPICS_SEEN
        return self.epoch + 1

    # -- records ---------------------------------------------------------------------------------------------

    @classmethod
    def is_replaced_by(cls, record: CoordinatorRecord) -> bool:
        """Return whether a record deletes the group, so that no earlier one counts."""
        return isinstance(record.key, cls.record_types.group) and record.value is None

    def tombstones(self, dialect: Dialect) -> list[CoordinatorRecord]:
        """Return the records that delete the group while it is Empty."""
        del dialect
        return self.record_types.group_tombstones(self.id)

    def replay(self, record: CoordinatorRecord, journal: Journal) -> None:
        """Apply a record; one of a member that does not exist creates it. The journal gets what it replaces."""
        types = self.record_types
        key: Any = record.key
        value: Any = record.value
        match type(key):
            case types.group if value is not None:
                self._replay_group(value, journal)
            case types.target_epoch if value is not None:
                journal.set(self, "target_epoch", value.assignment_epoch)
                journal.set(self, "target_time", value.assignment_timestamp)
            case types.member if value is None:
                self._remove_member(key.member_id, journal)
            case types.member:
                self._put_member(types.described(self._member(key.member_id), value), journal)
            case types.target if value is None:
                journal.pop(self.targets, key.member_id)
            case types.target:
                journal.put(self.targets, key.member_id, types.target_of(value))
            case types.current if value is not None:
                self._put_member(types.reconciled(self._member(key.member_id), value), journal)
            case _:
                self._replay_further(record, journal)

    def _replay_group(self, value: Any, journal: Journal) -> None:  # noqa: ANN401 - each kind has its own
        journal.set(self, "epoch", value.epoch)
        journal.set(self, "metadata_hash", value.metadata_hash)

    def _replay_further(self, record: CoordinatorRecord, journal: Journal) -> None:
        """Apply a record that not every kind of group has; do nothing for a tombstone without effect."""

    def _member(self, member_id: str) -> M:
        member: M = self.members.get(member_id) or self.record_types.new_member(member_id)
        return member

    def _put_member(self, member: M, journal: Journal) -> None:
        journal.put(self.members, member.id, member)
        self._order.put(member.id, journal)
        if member.instance_id is not None:
            journal.put(self.static_members, member.instance_id, member.id)

    def _remove_member(self, member_id: str, journal: Journal) -> None:
        member = journal.pop(self.members, member_id)
        if member is None:
            return
        self._order.remove(member_id, journal)
        if member.instance_id is not None:
            journal.pop(self.static_members, member.instance_id)
