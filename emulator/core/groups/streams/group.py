"""A streams group: the state that its records describe. Every change is a record that is replayed.

Kafka: `StreamsGroup`, and the `replay` methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.messages import streams_group_records as wire
from koordinator.wire.values import mutable

from ...journal import JournaledTable
from ..modern.group import GroupState, ModernGroup
from .member import StreamsMember
from .reconciliation import Holdings
from .records import RECORD_TYPES, group_record
from .tasks import ReportedOffsets, Task, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from uuid import UUID

    from koordinator.wire.messages.streams_group_heartbeat import EndpointToPartitions

    from ....config.settings import Settings
    from ...clock import GroupClock
    from ...cluster import ClusterState
    from ...data.topic import TopicState
    from ...dialect import Dialect
    from ...journal import Journal
    from ..records import CoordinatorRecord
    from .topology import ConfiguredTopology

STREAMS = "streams"
"""The kind of group in ListGroups, and its protocol type."""

NAME = "sticky"
"""The assignor of streams groups."""

FIRST_EPOCH = 1
"""The epoch of a new streams group, and the lowest of a member while the first target is delayed."""

STANDBY, WARMUP = "standby", "warmup"

NOTHING_REFINED: tuple[int, Mapping[str, Tasks]] = (-1, {})

NOT_VALIDATED = -1
"""The validated topology epoch while topics are missing or wrong."""


@mutable
class SoftState:
    """The part of a streams group that is in no record, and that no failed write takes back.

    `shutdown_by` is the member that asked all others to end. `endpoint_epoch` rises with the tasks of members that
    have an endpoint. `creating` are the internal topics that the broker is about to create, and `creation_errors` why
    it could not, each with the group time in ms until which it does not try again. Members report
    `task_offsets`. `endpoint_rows` are the partitions at endpoints as responses have had them, until the member or the
    topology changes.
    """

    shutdown_by: str | None = None
    endpoint_epoch: int = 0
    creating: set[str] = field(default_factory=set)
    creation_errors: dict[str, tuple[str, int]] = field(default_factory=dict)
    task_offsets: dict[str, ReportedOffsets] = field(default_factory=dict)
    endpoint_rows: dict[str, EndpointToPartitions] = field(default_factory=dict)


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """A group of the streams protocol (KIP-1071): members with tasks of one topology."""

    kind = STREAMS
    record_types = RECORD_TYPES

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now, dialect)
        self.topology: wire.StreamsGroupTopologyValue | None = None
        self.validated_topology_epoch = NOT_VALIDATED
        self.assignment_configs: Mapping[str, str] = {}
        """The settings of the latest target's assignor, as the group's record has them."""
        self.configured: ConfiguredTopology | None = None
        """The topology with the topics that exist; None after loading, until the next heartbeat."""
        self.refined = NOTHING_REFINED
        """A target epoch, and the tasks that its members go for. They are those of the target, unless a request had the
        instance id of another member: it takes the tasks of that member, even if it is refused. Since 4.4."""
        self.active_at: JournaledTable[Task, str] = JournaledTable()
        """The process of each active task, the last one of several."""
        self.replicas_at: JournaledTable[tuple[str, Task], frozenset[str]] = JournaledTable()
        """The processes of each standby and each warm-up task."""
        self.soft = SoftState()

    @staticmethod
    def first_epoch(dialect: Dialect) -> int:
        """Return 1, in every release (4.2: `GroupMetadataManager.streamsGroupHeartbeat`)."""
        del dialect
        return FIRST_EPOCH

    @property
    def state(self) -> GroupState:
        """The state, which follows from the topology and the epochs (`StreamsGroup.maybeUpdateGroupState`)."""
        is_validated = self.topology is not None and self.topology.epoch == self.validated_topology_epoch
        return GroupState.NOT_READY if self.members and not is_validated else super().state

    def assignor(self, settings: Settings) -> str:
        """Return the name of the only assignor."""
        del settings
        return NAME

    def named_partitions(self, cluster: ClusterState, held: Tasks) -> Mapping[str, tuple[int, ...]]:
        """Return the input partitions of active tasks by topic, sorted, without topics that do not exist."""
        found = self.inputs_of(held.active, cluster.topics.partition_count)
        return {name: tuple(partitions) for name, partitions in found.items()}

    def epoch_record(self, epoch: int) -> CoordinatorRecord:
        """Return the record of an epoch that rises for no other change."""
        return group_record(self.id, epoch, self.metadata_hash, self.validated_topology_epoch, self.assignment_configs)

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

    def holdings(self, process_id: str) -> Holdings:
        """Return the tasks that are taken, for a member of a process."""
        replicas: dict[str, list[Task]] = {STANDBY: [], WARMUP: []}
        for (kind, task), processes in self.replicas_at.items():
            if process_id in processes:
                replicas[kind].append(task)
        active = frozenset(task for task, process in self.active_at.items() if process == process_id)
        own = Tasks(active, frozenset(replicas[STANDBY]), frozenset(replicas[WARMUP]))
        return Holdings(frozenset(self.active_at), own)

    def _hold(self, member: StreamsMember, journal: Journal) -> None:
        """Note the process of a member's tasks. Kafka: `StreamsGroup.addTaskProcessId`."""
        held, process = member.held(), member.process_id
        for task in held.active:
            journal.put(self.active_at, task, process)
        for key in _replicas(held):
            journal.put(self.replicas_at, key, self.replicas_at.get(key, frozenset()) | {process})

    def _release(self, member: StreamsMember | None, journal: Journal) -> None:
        """Forget the process of a member's tasks, even if another member of it has one of them.

        Kafka: `StreamsGroup.removeTaskProcessIds`.
        """
        if member is None:
            return
        held, process = member.held(), member.process_id
        for task in held.active:
            if self.active_at.get(task) == process:
                journal.pop(self.active_at, task)
        for key in _replicas(held):
            if key in self.replicas_at:
                journal.put(self.replicas_at, key, self.replicas_at[key] - {process})

    def relabel(self, owner_id: str, member_id: str) -> None:
        """Give the refined tasks of a member to the member of a request with its instance id.

        Kafka: `StreamsGroup.relabelRefinedAssignment`, before any check of the request.
        """
        epoch, refined = self.refined
        if owner_id in refined:
            tasks = dict(refined)
            tasks[member_id] = tasks.pop(owner_id)
            self.refined = epoch, tasks

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions: they also notice changed topics."""
        return self.state is GroupState.STABLE and self.has_seen_topics(topics_version)

    def replay(self, record: CoordinatorRecord, journal: Journal) -> None:
        """Apply a record; the soft state of removed members is dropped."""
        super().replay(record, journal)
        if not self.members:
            self.soft.shutdown_by = None

    def _replay_group(self, value: wire.StreamsGroupMetadataValue, journal: Journal) -> None:
        super()._replay_group(value, journal)
        journal.set(self, "validated_topology_epoch", value.validated_topology_epoch)
        configs = {each.key: each.value for each in value.last_assignment_configs or ()}
        journal.set(self, "assignment_configs", configs)

    def _replay_further(self, record: CoordinatorRecord, journal: Journal) -> None:
        if isinstance(record.value, wire.StreamsGroupTopologyValue):
            journal.set(self, "topology", record.value)

    def _put_member(self, member: StreamsMember, journal: Journal) -> None:
        self.soft.endpoint_rows.pop(member.id, None)
        before = self.members.get(member.id)
        self._release(before, journal)
        self._hold(member, journal)
        if before is not None and before.instance_id is not None and before.instance_id != member.instance_id:
            journal.pop(self.static_members, before.instance_id)
        super()._put_member(member, journal)

    def _remove_member(self, member_id: str, journal: Journal) -> None:
        self.soft.task_offsets.pop(member_id, None)
        self.soft.endpoint_rows.pop(member_id, None)
        self._release(self.members.get(member_id), journal)
        super()._remove_member(member_id, journal)


def _replicas(tasks: Tasks) -> list[tuple[str, Task]]:
    return [*((STANDBY, task) for task in tasks.standby), *((WARMUP, task) for task in tasks.warmup)]


def inputs(topology: wire.StreamsGroupTopologyValue | None) -> list[str]:
    """Return the topics that a topology reads: sources and repartition topics."""
    subtopologies = () if topology is None else topology.subtopologies
    names = (
        name
        for each in subtopologies
        for name in (*each.source_topics, *(row.name for row in each.repartition_source_topics))
    )
    return list(dict.fromkeys(names))
