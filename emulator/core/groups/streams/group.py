"""A streams group: the state that its records describe. Every change is a record that is replayed.

Kafka: `StreamsGroup`, and the `replay` methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from koordinator.wire.messages import streams_group_records as wire

from ..modern.group import ModernGroup
from .member import StreamsMember, StreamsMemberState
from .records import group_tombstones
from .tasks import ReportedOffsets, Task, Tasks, tasks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ...clock import GroupClock
    from ...data.topic import TopicState
    from ...dialect import Dialect
    from ...journal import Journal
    from ..group import BaseGroup
    from ..records import CoordinatorRecord
    from .topology import ConfiguredTopology

STREAMS = "streams"
"""The kind of group in ListGroups, and its protocol type."""

NOT_VALIDATED = -1
"""The validated topology epoch while topics are missing or wrong."""


class StreamsGroupState(Enum):
    """The states of Kafka's `StreamsGroup.StreamsGroupState`."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True)
class SoftState:
    """The part of a streams group that is in no record, and that no failed write takes back.

    `shutdown_by` is the member that asked all others to end. `endpoint_epoch` rises with the tasks of members that
    have an endpoint. `creating` are the internal topics that the broker is about to create, and `creation_errors` why
    it could not, each with the group time in ms until which it does not try again. Members report
    `task_offsets`.
    """

    shutdown_by: str | None = None
    endpoint_epoch: int = 0
    creating: set[str] = field(default_factory=set)
    creation_errors: dict[str, tuple[str, int]] = field(default_factory=dict)
    task_offsets: dict[str, ReportedOffsets] = field(default_factory=dict)


class StreamsGroup(ModernGroup[StreamsMember]):
    """A group of the streams protocol (KIP-1071): members with tasks of one topology."""

    kind = STREAMS

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now, dialect)
        self.topology: wire.StreamsGroupTopologyValue | None = None
        self.validated_topology_epoch = NOT_VALIDATED
        self.assignment_configs: Mapping[str, str] = {}
        """The settings of the latest target's assignor, as the group's record has them."""
        self.targets: dict[str, Tasks] = {}
        self.configured: ConfiguredTopology | None = None
        """The topology with the topics that exist; None after loading, until the next heartbeat."""
        self.soft = SoftState()
        self.origin: tuple[BaseGroup, tuple[CoordinatorRecord, ...]] | None = None
        """The classic group in whose place this one is, and the records of the conversion, until the first request
        writes them before its own."""
        self.noted_state = StreamsGroupState.EMPTY
        """The state in the trace."""

    @property
    def state(self) -> StreamsGroupState:
        """The state, which follows from the topology and the epochs (`StreamsGroup.maybeUpdateGroupState`)."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        if self.unsettled:
            return StreamsGroupState.RECONCILING
        return StreamsGroupState.STABLE

    @property
    def is_unused(self) -> bool:
        """Whether the group has no members and no offsets; commits may be in flight."""
        return not (self.members or self.offsets or self.pending_offsets)

    @property
    def names_its_topics(self) -> bool:
        """True: they are in the topology."""
        return True

    def source_subtopology(self, topic: str) -> str | None:
        """Return the id of the subtopology that reads a topic, the last one of several."""
        subtopologies = () if self.topology is None else self.topology.subtopologies
        for each in reversed(subtopologies):
            if topic in each.source_topics or any(row.name == topic for row in each.repartition_source_topics):
                return each.subtopology_id
        return None

    def is_subscribed(self, topic: str) -> bool:
        """Return whether the group has members, and its topology reads a topic."""
        return bool(self.members) and self.source_subtopology(topic) is not None

    def subscribed_topics(self, member_id: str) -> Collection[str]:
        """Return the topics that the topology reads, for any member."""
        del member_id
        return inputs(self.topology)

    def partitions_of(self, member_id: str, topics: Mapping[UUID, TopicState]) -> dict[str, list[int]]:
        """Return the input partitions of a member's active tasks by topic, sorted."""
        counts = {topic.name: len(topic.logs) for topic in topics.values()}
        return self.inputs_of(self.members[member_id].assigned.active, lambda name: counts.get(name, 0))

    def inputs_of(self, tasks: Collection[Task], partition_count: Callable[[str], int]) -> dict[str, list[int]]:
        """Return the input partitions of tasks by topic, sorted; a topic that does not exist has 0 partitions."""
        found: dict[str, list[int]] = {}
        for name in inputs(self.topology):
            reader, count = self.source_subtopology(name), partition_count(name)
            partitions = sorted(at for subtopology_id, at in tasks if subtopology_id == reader and at < count)
            if partitions:
                found[name] = partitions
        return found

    @property
    def unsettled(self) -> list[str]:
        """The ids of the members without their target."""
        return [each.id for each in self.members.values() if not each.is_settled(self.target_epoch)]

    def is_awaited(self, member_id: str) -> bool:
        """Return whether a member has not reached its target yet."""
        return not self.members[member_id].is_settled(self.target_epoch)

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions: they also notice changed topics."""
        return self.state is StreamsGroupState.STABLE and self.has_seen_topics(topics_version)

    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the time of a commit, unless the topology reads its topic."""
        del dialect
        return None if self.is_subscribed(topic) else committed.commit_timestamp

    def tombstones(self, dialect: Dialect) -> list[CoordinatorRecord]:
        """Return the records that delete the group while it is Empty."""
        del dialect
        return group_tombstones(self.id)

    def replay(self, record: CoordinatorRecord, journal: Journal) -> None:
        """Apply a record; one of a member that does not exist creates it. The journal gets what it replaces."""
        match record.key, record.value:
            case wire.StreamsGroupMetadataKey(), wire.StreamsGroupMetadataValue() as value:
                journal.set(self, "epoch", value.epoch)
                journal.set(self, "metadata_hash", value.metadata_hash)
                journal.set(self, "validated_topology_epoch", value.validated_topology_epoch)
                configs = {each.key: each.value for each in value.last_assignment_configs or ()}
                journal.set(self, "assignment_configs", configs)
            case wire.StreamsGroupTopologyKey(), wire.StreamsGroupTopologyValue() as value:
                journal.set(self, "topology", value)
            case wire.StreamsGroupTargetAssignmentMetadataKey(), wire.StreamsGroupTargetAssignmentMetadataValue() as v:
                journal.set(self, "target_epoch", v.assignment_epoch)
                journal.set(self, "target_time", v.assignment_timestamp)
            case wire.StreamsGroupMemberMetadataKey() as key, wire.StreamsGroupMemberMetadataValue() as value:
                self._put_member(_described(self._member(key.member_id), value), journal)
            case wire.StreamsGroupMemberMetadataKey() as key, None:
                self._remove_member(key.member_id, journal)
            case (
                wire.StreamsGroupTargetAssignmentMemberKey() as key,
                wire.StreamsGroupTargetAssignmentMemberValue() as v,
            ):
                target = Tasks(tasks_of(v.active_tasks), tasks_of(v.standby_tasks), tasks_of(v.warmup_tasks))
                journal.put(self.targets, key.member_id, target)
            case wire.StreamsGroupTargetAssignmentMemberKey() as key, None:
                journal.pop(self.targets, key.member_id)
            case (
                wire.StreamsGroupCurrentMemberAssignmentKey() as key,
                wire.StreamsGroupCurrentMemberAssignmentValue() as v,
            ):
                self._put_member(_reconciled(self._member(key.member_id), v), journal)
            case _:
                pass
        if not self.members:
            self.soft.shutdown_by = None

    def _member(self, member_id: str) -> StreamsMember:
        return self.members.get(member_id) or StreamsMember(member_id)

    def _put_member(self, member: StreamsMember, journal: Journal) -> None:
        journal.put(self.members, member.id, member)
        self._order.put(member.id, journal)
        if member.instance_id is not None:
            journal.put(self.static_members, member.instance_id, member.id)

    def _remove_member(self, member_id: str, journal: Journal) -> None:
        self.soft.task_offsets.pop(member_id, None)
        member = journal.pop(self.members, member_id)
        self._order.remove(member_id, journal)
        if member is not None and member.instance_id is not None:
            journal.pop(self.static_members, member.instance_id)


def inputs(topology: wire.StreamsGroupTopologyValue | None) -> list[str]:
    """Return the topics that a topology reads: sources and repartition topics."""
    subtopologies = () if topology is None else topology.subtopologies
    names = (
        name
        for each in subtopologies
        for name in (*each.source_topics, *(row.name for row in each.repartition_source_topics))
    )
    return list(dict.fromkeys(names))


def _described(member: StreamsMember, value: wire.StreamsGroupMemberMetadataValue) -> StreamsMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=value.user_endpoint,
        tags={each.key: each.value for each in value.client_tags},
    )


def _reconciled(member: StreamsMember, value: wire.StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=StreamsMemberState(value.state),
        assigned=Tasks(tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)),
        pending=Tasks(
            tasks_of(value.active_tasks_pending_revocation),
            tasks_of(value.standby_tasks_pending_revocation),
            tasks_of(value.warmup_tasks_pending_revocation),
        ),
        active_since=_since((*value.active_tasks, *value.active_tasks_pending_revocation), value.member_epoch),
    )


def _since(rows: Iterable[wire.CurrentTaskIds], unknown: int) -> dict[Task, int]:
    """Return the epoch of each active task; an older log lacks them, or has another number of them."""
    found: dict[Task, int] = {}
    for row in rows:
        epochs = row.assignment_epochs or ()
        if len(epochs) != len(row.partitions):
            epochs = (unknown,) * len(row.partitions)
        for partition, epoch in zip(row.partitions, epochs, strict=True):
            found[Task(row.subtopology_id, partition)] = epoch
    return found
