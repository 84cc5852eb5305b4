"""The state that all nodes share: brokers, topics, and Kafka's rules for topics.

Each log exists once; nothing is replicated. A partition's replicas are the brokers that may lead it, and its leader is
the broker that serves it. Every change of leader raises the leader epoch.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.primitives import ZERO_UUID

from ..config.kafka_configs import BROKER, CLIENT_METRICS, GROUP
from .acls.authorizer import authorizer_of
from .clock import GroupClock
from .data import reassignments
from .data.client_metadata import ClientMetadata
from .data.features import Features
from .data.log import PartitionLog
from .data.metadata_changes import (
    AclSet,
    ClientQuotaSet,
    DelegationTokenSet,
    FeatureLevelChanged,
    PartitionLed,
    ProducerIdsReserved,
    RecordsDeleted,
    ResourceConfigured,
    ScramCredentialSet,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from .data.producer_ids import ProducerIds
from .data.storage import Storage
from .data.topic import INTERNAL_TOPICS, NO_LEADER, OFFSETS_TOPIC, TopicState, internal_shape
from .data.topic_configs import inherited, refuse_configs
from .data.topic_rules import MetricNames, refuse_assignment, refuse_name, refuse_shape, unknown_partitions
from .groups.records import offsets_partition
from .refusal import RefusedError
from .registrations import PLAINTEXT, Endpoint, Registration, place_replicas

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ..config.settings import Settings
    from .data.metadata_changes import Change
    from .quotas.rates import TokenBucket

MIN_ISR = "min.insync.replicas"

DELETED_KEPT = 10_000
"""The number of deleted topics whose names are kept."""


class ClusterState:
    """Brokers and topics.

    Register brokers before creating topics: a topic created without brokers has no leader. `new_uuid` supplies topic
    ids.
    """

    def __init__(self, cluster_id: str, settings: Settings, new_uuid: Callable[[], uuid.UUID]) -> None:
        self.cluster_id = cluster_id
        self.settings = self.configured = settings
        """The settings in force, and those without the values that clients have set."""
        self.brokers: dict[int, Registration] = {}
        self.topics: dict[str, TopicState] = {}
        self.topics_by_id: dict[uuid.UUID, TopicState] = {}
        self.deleted_topics: dict[uuid.UUID, str] = {}
        """The names of deleted topics by id, the last DELETED_KEPT of them: the trace names them."""
        self.hidden_topics: dict[str, TopicState] = {}
        """Read-only topics of the emulator, served by name but never listed."""
        self.unled_topics: dict[str, TopicState] = {}
        """Topics in ZooKeeper that brokers do not know, because no partition of them has ever had a leader."""
        self.queued_deletions: dict[str, set[int]] = {}
        """Deleted topics whose names ZooKeeper keeps, until these brokers with replicas are up."""
        self.storage = Storage(self.apply)
        self.producer_ids = ProducerIds(self.storage)
        self.features = Features(settings)
        self.resource_configs: dict[int, dict[str, dict[str, str]]] = {BROKER: {}, CLIENT_METRICS: {}, GROUP: {}}
        """The configs of resources that are no topics, by type and name; groups need not exist (KIP-848)."""
        if self.features.dialect.tracks_eligible_leaders:
            self.resource_configs[BROKER][""] = {MIN_ISR: dict(settings.further).get(MIN_ISR, "1")}
        self.clients = ClientMetadata()
        self.authorizer = authorizer_of(settings, self.clients.acls)
        """Decides about requests of clients; None without `authorizer.class.name`: all are allowed."""
        self.mutation_buckets: dict[tuple[str, str], TokenBucket] = {}
        """The controller's buckets of mutations, by the user and the client id that share one (KIP-599)."""
        self.topic_defaults = inherited(settings, {})
        """The configs that topics inherit from all brokers; the topics share it."""
        self.group_clocks: dict[str, GroupClock] = {}
        """The clocks of groups, whichever node coordinates them; see `clock_of`."""
        self.auto_clock_groups: dict[str, None] = {}
        """Groups with an `auto` clock that may have something to wait for; the clock advance removes the others."""
        self.frozen_states: dict[str, str] = {}
        """By group id, the state in which a group freezes as soon as it enters it; see `GroupStore.freeze`."""
        self.marker_faults: dict[tuple[str, int], str] = {}
        """A test's faults in transaction markers, by partition; see `transactions.markers`."""
        self.topics_version = self.newest_topic_version = 0
        """Counts changes of topics and their partitions, so that consumer groups notice them."""
        self.leader_changes = 0
        """Counts changes of leaders and configs, so that nodes notice them."""
        self.new_uuid = new_uuid
        # the internal topics that coordinators are led by before the topics exist
        self._plans: dict[str, TopicState] = {}
        self.request_tokens = count(1)
        """The tokens of requests between brokers."""
        self.metric_names = MetricNames()

    @property
    def controller_id(self) -> int:
        """The lowest node id of the brokers that are up, reported as the controller; -1 without any."""
        return min((broker.node_id for broker in self.brokers.values() if broker.is_up), default=-1)

    def register(self, node_id: int, host: str, port: int, rack: str | None = None) -> Registration:
        """Add a broker. Existing partitions do not move to it, as in Kafka."""
        broker = self.brokers[node_id] = Registration(node_id, {PLAINTEXT: Endpoint(host, port)}, rack)
        return broker

    def unregister(self, node_id: int) -> None:
        """Remove a broker. Replica lists still name it, as in Kafka."""
        self.fence(node_id)
        del self.brokers[node_id]

    def fence(self, node_id: int) -> None:
        """Mark a broker as down; the next replica that is up takes over each partition it led."""
        self.brokers[node_id].is_up = False
        self._elect_leaders()

    def unfence(self, node_id: int) -> None:
        """Mark a broker as up; it leads the partitions that had no leader, and is in sync in all of its partitions."""
        self.brokers[node_id].is_up = True
        self._elect_leaders()
        reassignments.complete_all(self)

    def is_up(self, node_id: int) -> bool:
        """Return whether the broker exists and is not fenced."""
        return node_id in self.brokers and self.brokers[node_id].is_up

    def endpoint(self, node_id: int, listener: str) -> Endpoint | None:
        """Return the address of a broker for clients of this listener, or None if they cannot reach it."""
        return self.brokers[node_id].endpoints.get(listener) if self.is_up(node_id) else None

    def reachable_brokers(self, listener: str) -> Iterator[tuple[Registration, Endpoint]]:
        """Yield the brokers that clients of this listener can reach, with their addresses."""
        for broker in self.brokers.values():
            endpoint = broker.endpoints.get(listener)
            if broker.is_up and endpoint is not None:
                yield broker, endpoint

    def in_sync(self, topic: TopicState, partition: int) -> tuple[int, ...]:
        """Return the replicas of a partition that are up."""
        return tuple(replica for replica in topic.replicas[partition] if self.is_up(replica))

    def offline(self, topic: TopicState, partition: int, listener: str) -> tuple[int, ...]:
        """Return the replicas of a partition that clients of this listener cannot reach."""
        return tuple(replica for replica in topic.replicas[partition] if self.endpoint(replica, listener) is None)

    def move_leader(self, topic: TopicState, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition, in a new epoch even if it leads it already.

        A broker that is no replica replaces the current leader among the replicas.
        """
        before, replicas = topic.leaders[partition], topic.replicas[partition]
        if node_id not in replicas:
            replaced = before if before in replicas else next(iter(replicas), None)
            topic.replicas[partition] = (node_id, *(replica for replica in replicas if replica != replaced))
        self._set_leaders({(topic.name, partition): (topic, node_id)})

    def check_leader(self, topic: TopicState, partition: int, node_id: int, current_leader_epoch: int = -1) -> Error:
        """Return why a broker does not serve a partition: 6 if it is not the leader, 74 or 75 for a wrong epoch.

        `current_leader_epoch` is the client's, -1 if unknown (KIP-320). Only replicas check it, and before the leader:
        other brokers do not know the epoch (`ReplicaManager.getPartitionOrError`, `Partition.getLocalLog`).
        """
        epoch = topic.epochs[partition]
        if current_leader_epoch not in {-1, epoch} and node_id in topic.replicas[partition]:
            return Error.FENCED_LEADER_EPOCH if current_leader_epoch < epoch else Error.UNKNOWN_LEADER_EPOCH
        return Error.NONE if topic.leaders[partition] == node_id else Error.NOT_LEADER_OR_FOLLOWER

    def _elect_leaders(self) -> None:
        """Give every partition without a live leader to its first replica that is up; leaders never move back."""
        if self.controller_id != -1 or not self.features.dialect.leaders_outlive_controller:
            elected = {
                (topic.name, partition): (topic, first)
                for topic in self.all_topics()
                for partition, leader in enumerate(topic.leaders)
                if not self.is_up(leader) and (first := self._first_up(topic.replicas[partition])) != leader
            }
            self._set_leaders(elected)
            self._announce_topics()

    def _first_up(self, replicas: Iterable[int]) -> int:
        return next((replica for replica in replicas if self.is_up(replica)), NO_LEADER)

    def _set_leaders(self, leaders: Mapping[tuple[str, int], tuple[TopicState, int]]) -> None:
        changes: list[PartitionLed] = []
        for (_, partition), (topic, node_id) in leaders.items():
            self.leader_changes += 1
            topic.leaders[partition] = node_id
            topic.epochs[partition] += 1
            if node_id != NO_LEADER:
                topic.unknown.discard(partition)
                topic.logs[partition].begin_epoch(topic.epochs[partition])
            if topic.name in self.topics:
                changes.append(self._led(topic, partition))
        self.storage.led(changes)

    def replicas_changed(self, topic: TopicState, partition: int) -> None:
        """Store the replicas of a partition after a reassignment that has begun; its leader remains."""
        self.leader_changes += 1
        self.storage.led([self._led(topic, partition)])

    def _led(self, topic: TopicState, partition: int) -> PartitionLed:
        # all brokers are up after a restart, so that each reassignment ends
        return PartitionLed(topic.topic_id, partition, topic.lasting_replicas(partition), topic.epochs[partition])

    def apply(self, changes: Iterable[Change]) -> None:
        """Bring changes into effect (`replay` of KRaft's control managers). Those of leaders are in effect already."""
        for change in changes:
            match change:
                case ProducerIdsReserved():
                    self.producer_ids.reserved = change.end
                case FeatureLevelChanged():
                    self.features.set_level(change.name, change.level)
                case ResourceConfigured():
                    self._configure(change)
                case AclSet() | ClientQuotaSet() | DelegationTokenSet() | ScramCredentialSet():
                    self.clients.apply(change)
                case TopicCreated():
                    self._add_topic(self._new_topic(change))
                case TopicGrown():
                    self._add_partitions(self.topics_by_id[change.topic_id], change.replicas)
                    self._announce_topics()
                case TopicConfigured():
                    self.topics_by_id[change.topic_id].configs = dict(change.configs)
                    self.leader_changes += 1
                case RecordsDeleted():
                    self.topics_by_id[change.topic_id].logs[change.partition].truncate_front(change.start)
                case TopicDeleted():
                    self._remove_topic(self.topics_by_id[change.topic_id])

    def _configure(self, change: ResourceConfigured) -> None:
        self.resource_configs[change.resource_type][change.name] = dict(change.configs)
        self.reconfigure(self.configured)
        self.leader_changes += 1

    def reconfigure(self, settings: Settings) -> None:
        """Apply settings; those that a client has set for all brokers override them."""
        self.configured = settings
        dynamic = self.resource_configs[BROKER].get("", {})
        self.settings = settings.with_dynamic(dynamic)
        self.topic_defaults.clear()
        self.topic_defaults |= inherited(settings, dynamic)

    def _new_topic(self, change: TopicCreated) -> TopicState:
        plan = self._plans.get(change.name)
        if plan is not None and plan.topic_id == change.topic_id:
            return plan
        topic = TopicState(change.name, change.topic_id, configs=dict(change.configs))
        self._add_partitions(topic, change.replicas)
        return topic

    def _add_topic(self, topic: TopicState) -> None:
        self.topics_version += 1
        self.newest_topic_version = self.topics_version
        topics = self.topics if topic.is_known else self.unled_topics
        self.topics_by_id[topic.topic_id] = topics[topic.name] = topic
        if not topic.is_known:
            return
        self.metric_names.add(topic.name)
        if not topic.is_internal:
            topic.defaults = self.topic_defaults
        if topic.name in INTERNAL_TOPICS:
            # if a client has created it, it has a partition count of its own
            self.leader_changes += topic is not self._plans.pop(topic.name, None)

    def _announce_topics(self) -> None:
        for topic in [topic for topic in self.unled_topics.values() if topic.is_known]:
            self._add_topic(self.unled_topics.pop(topic.name))
        queued = self.queued_deletions.items()
        self.queued_deletions = {name: nodes for name, nodes in queued if not all(map(self.is_up, nodes))}

    def _remove_topic(self, topic: TopicState) -> None:
        self.topics_version += 1
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        self.deleted_topics[topic.topic_id] = topic.name
        if len(self.deleted_topics) > DELETED_KEPT:
            del self.deleted_topics[next(iter(self.deleted_topics))]
        self.metric_names.remove(topic.name)
        # its partitions have lost their leaders
        self.leader_changes += 1

    def _add_partitions(self, topic: TopicState, replicas: Sequence[Sequence[int]]) -> None:
        self.topics_version += 1
        for nodes in replicas:
            log = PartitionLog()
            log.begin_epoch(0)
            topic.logs.append(log)
            topic.replicas.append(tuple(nodes))
            topic.leaders.append(self._first_up(nodes))
            topic.epochs.append(0)
        topic.unknown = unknown_partitions(self, topic)

    def clock_of(self, group_id: str, now: int) -> GroupClock:
        """Return the clock of a group, which need not exist; a new clock has the mode `group.clock`."""
        if group_id not in self.group_clocks:
            self.group_clocks[group_id] = GroupClock(self.settings.group_clock, now)
        return self.group_clocks[group_id]

    def freeze_group(self, group_id: str, state: str) -> None:
        """Freeze a group, which need not exist, once it enters a state; `GroupStore.freeze` freezes it now."""
        self.frozen_states[group_id] = state

    def thaw_group(self, group_id: str) -> None:
        """Undo `freeze_group`; `overrides.thaw` thaws a group that is frozen already."""
        del self.frozen_states[group_id]

    def reset_groups(self) -> None:
        """Forget the clocks and freezes of all groups."""
        self.group_clocks.clear()
        self.frozen_states.clear()

    def topic(self, name: str) -> TopicState | None:
        """Return the topic of this name, hidden ones included, or None."""
        return self.topics.get(name) or self.hidden_topics.get(name)

    def all_topics(self) -> list[TopicState]:
        """Return all topics, with hidden ones and those that are planned."""
        return [*self.topics.values(), *self.hidden_topics.values(), *self._plans.values(), *self.unled_topics.values()]

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicState | None:
        """Return the topic of this id, hidden ones included, or None."""
        hidden = (topic for topic in self.hidden_topics.values() if topic.topic_id == topic_id)
        return self.topics_by_id.get(topic_id) or next(hidden, None)

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """Return the name of the topic that has or had this id; None if it is unknown."""
        topic = self.topic_by_id(topic_id)
        return self.deleted_topics.get(topic_id) if topic is None else topic.name

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, 0 if it does not exist."""
        found = self.topic(topic)
        return len(found.logs) if found else 0

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition, or None if it does not exist."""
        found = self.topic(topic)
        return found.log(partition) if found else None

    def partitions_or_default(self, partitions: int) -> int:
        """Return `partitions`, or `num.partitions` for -1."""
        return self.settings.num_partitions if partitions == -1 else partitions

    def replication_factor(self, replication_factor: int) -> int:
        """Return `replication_factor`, or `default.replication.factor` for -1."""
        return self.settings.default_replication_factor if replication_factor == -1 else replication_factor

    def place_replicas(self, partitions: Iterable[int], replication_factor: int) -> list[tuple[int, ...]]:
        """Return replicas for partitions: leaders round-robin, fenced brokers last (`StripedReplicaPlacer`)."""
        return place_replicas(self.brokers, partitions, replication_factor)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
        replication_factor: int = -1,
        together: Collection[str] = (),
    ) -> TopicState:
        """Create a topic; -1 takes the broker's default. Raises RefusedError where Kafka refuses it."""
        refusal = (
            refuse_name(self, name, together)
            or refuse_shape(self, partitions, replication_factor)
            or refuse_configs(self.settings, configs or {})
            or (refuse_assignment(self, replicas, len(replicas[0])) if replicas else None)
        )
        if refusal is not None:
            raise RefusedError(refusal)
        topic_id = self.new_uuid()
        if replicas is None:
            count = self.partitions_or_default(partitions)
            replicas = self.place_replicas(range(count), self.replication_factor(replication_factor))
        change = TopicCreated(topic_id, name, tuple(map(tuple, replicas)), dict(configs or {}))
        self.storage.propose(change)
        return self.topics_by_id[topic_id]

    def restore_topic(self, topic: TopicState, epochs: Mapping[int, int]) -> None:
        """Restore a topic with its logs and replicas; partitions missing in `epochs` have leader epoch 0."""
        topic.leaders = [self._first_up(nodes) for nodes in topic.replicas]
        topic.epochs = [epochs.get(partition, 0) for partition in range(len(topic.logs))]
        for log, epoch in zip(topic.logs, topic.epochs, strict=True):
            log.begin_epoch(epoch)
        self._add_topic(topic)

    def auto_create_topic(self, name: str, together: Collection[str] = ()) -> TopicState:
        """Create a topic that a client requested metadata of. Raises RefusedError where Kafka refuses it."""
        return self.internal_topic(name) if name in INTERNAL_TOPICS else self.create_topic(name, together=together)

    def internal_topic(self, name: str = OFFSETS_TOPIC, topic_id: uuid.UUID | None = None) -> TopicState:
        """Return an internal topic; create it, with this id or a new one, if it does not exist.

        A topic with another id is replaced.
        """
        topic = self.topics.get(name)
        if topic is not None and topic_id not in {None, topic.topic_id}:
            self.delete_topic(topic)
            self._plans[name], topic = topic, None
        if topic is None:
            topic = self.planned_topic(name)
            topic_id = topic_id or self.new_uuid()
            led = [
                PartitionLed(topic_id, at, topic.replicas[at], epoch) for at, epoch in enumerate(topic.epochs) if epoch
            ]
            topic.topic_id = topic_id
            self.storage.propose(TopicCreated(topic_id, name, tuple(topic.replicas), topic.configs), *led)
        return topic

    def planned_topic(self, name: str = OFFSETS_TOPIC) -> TopicState:
        """Return an internal topic, or its plan before it exists: the plan's leaders are coordinators already."""
        topic = self.topics.get(name) or self._plans.get(name)
        if topic is None:
            topic = self._plans[name] = TopicState(name, ZERO_UUID, configs=dict(INTERNAL_TOPICS[name]))
            partitions, copies = internal_shape(self.settings, name)
            self._add_partitions(topic, self.place_replicas(range(partitions), copies))
            # the coordinators of transactions begin now
            self.leader_changes += name != OFFSETS_TOPIC
        return topic

    def coordinated_by(self, node_id: int, name: str = OFFSETS_TOPIC) -> dict[int, int]:
        """Return the leader epoch of each partition of an internal topic that a broker coordinates."""
        if name != OFFSETS_TOPIC and name not in self.topics and name not in self._plans:
            return {}
        plan = self.planned_topic(name)
        return {at: plan.epochs[at] for at, leader in enumerate(plan.leaders) if leader == node_id}

    def coordinator_of(self, key: str, name: str = OFFSETS_TOPIC) -> int:
        """Return the node id of the coordinator of a group, or of a transactional id, or NO_LEADER."""
        return self.planned_topic(name).leader(self.partition_of(key, name))

    def partition_of(self, key: str, name: str = OFFSETS_TOPIC) -> int:
        """Return the partition of an internal topic that stores a group or transactional id."""
        return offsets_partition(key, internal_shape(self.settings, name)[0])

    def grow_topic(self, topic: TopicState, count: int, replicas: Sequence[Sequence[int]] | None = None) -> None:
        """Extend a topic to `count` partitions; `replicas` are those of the new ones."""
        before = len(topic.logs)
        assert count > before, f"{topic.name}: {count} partitions are not more than {before}"
        if replicas is None:
            replicas = self.place_replicas(range(before, count), len(topic.replicas[0]))
        self.storage.propose(TopicGrown(topic.topic_id, tuple(map(tuple, replicas))))

    def delete_topic(self, topic: TopicState) -> None:
        """Delete a topic with its records. A later topic of this name gets a new id."""
        self.storage.propose(TopicDeleted(topic.topic_id))
