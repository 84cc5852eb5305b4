"""The state that all nodes share: brokers, topics and their leaders, settings, and the clocks of groups.

A request proposes changes of metadata, `Storage` writes them, and `ClusterState.apply` brings them into effect.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from koordinator.wire.primitives import ZERO_UUID

from ..config.kafka_configs import BROKER, CLIENT_METRICS, GROUP
from .acls.authorizer import authorizer_of
from .brokers import PLAINTEXT, Brokers, Endpoint, Registration
from .clock import GroupClocks
from .data import reassignments
from .data.client_metadata import ClientMetadata
from .data.cluster_topics import ClusterTopics
from .data.features import Features
from .data.leaders import Leaders
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
from .data.topic import INTERNAL_TOPICS, OFFSETS_TOPIC, TopicState, internal_shape
from .data.topic_configs import inherited, refuse_configs
from .data.topic_rules import refuse_assignment, refuse_name, refuse_shape
from .groups.records import offsets_partition
from .refusal import RefusedError

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..config.settings import Settings
    from .data.metadata_changes import Change
    from .quotas.rates import TokenBucket

MIN_ISR = "min.insync.replicas"


class ClusterState:
    """Brokers and topics.

    Register brokers before creating topics: a topic created without brokers has no leader. `new_uuid` supplies topic
    ids.
    """

    def __init__(self, cluster_id: str, settings: Settings, new_uuid: Callable[[], uuid.UUID]) -> None:
        self.cluster_id = cluster_id
        self.settings = self.configured = settings
        """The settings in force, and those without the values that clients have set."""
        self.brokers = Brokers()
        self.storage = Storage(self.apply)
        self.producer_ids = ProducerIds(self.storage)
        self.features = Features(settings)
        self.topics = ClusterTopics(self.brokers, self.features, inherited(settings, {}))
        self.leaders = Leaders(self.brokers, self.topics, self.storage, self.features)
        self.resource_configs: dict[int, dict[str, dict[str, str]]] = {BROKER: {}, CLIENT_METRICS: {}, GROUP: {}}
        """The configs of resources that are no topics, by type and name; groups need not exist (KIP-848)."""
        if self.features.dialect.tracks_eligible_leaders:
            self.resource_configs[BROKER][""] = {MIN_ISR: dict(settings.further).get(MIN_ISR, "1")}
        self.clients = ClientMetadata()
        self.authorizer = authorizer_of(settings, self.clients.acls)
        """Decides about requests of clients; None without `authorizer.class.name`: all are allowed."""
        self.mutation_buckets: dict[tuple[str, str], TokenBucket] = {}
        """The controller's buckets of mutations, by the user and the client id that share one (KIP-599)."""
        self.clocks = GroupClocks(settings.group_clock)
        self.frozen_states: dict[str, str] = {}
        """By group id, the state in which a group freezes as soon as it enters it; see `GroupStore.freeze`."""
        self.marker_faults: dict[tuple[str, int], str] = {}
        """A test's faults in transaction markers, by partition; see `transactions.markers`."""
        self.new_uuid = new_uuid
        self.request_tokens = count(1)
        """The tokens of requests between brokers."""

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
        self.leaders.elect()

    def unfence(self, node_id: int) -> None:
        """Mark a broker as up; it leads the partitions that had no leader, and is in sync in all of its partitions."""
        self.brokers[node_id].is_up = True
        self.leaders.elect()
        reassignments.complete_all(self)

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
                    self.topics.add(self._new_topic(change))
                case TopicGrown():
                    self.topics.extend(self.topics.by_id[change.topic_id], change.replicas)
                    self.topics.announce()
                case TopicConfigured():
                    self.topics.by_id[change.topic_id].configs = dict(change.configs)
                    self.topics.leader_changes += 1
                case RecordsDeleted():
                    self.topics.by_id[change.topic_id].logs[change.partition].truncate_front(change.start)
                case TopicDeleted():
                    self.topics.remove(self.topics.by_id[change.topic_id])

    def _configure(self, change: ResourceConfigured) -> None:
        self.resource_configs[change.resource_type][change.name] = dict(change.configs)
        self.reconfigure(self.configured)
        self.topics.leader_changes += 1

    def reconfigure(self, settings: Settings) -> None:
        """Apply settings; those that a client has set for all brokers override them."""
        self.configured = settings
        dynamic = self.resource_configs[BROKER].get("", {})
        self.settings = settings.with_dynamic(dynamic)
        self.clocks.mode = self.settings.group_clock
        self.topics.defaults.clear()
        self.topics.defaults |= inherited(settings, dynamic)

    def _new_topic(self, change: TopicCreated) -> TopicState:
        plan = self.topics.planned.get(change.name)
        if plan is not None and plan.topic_id == change.topic_id:
            return plan
        topic = TopicState(change.name, change.topic_id, configs=dict(change.configs))
        self.topics.extend(topic, change.replicas)
        return topic

    def partitions_or_default(self, partitions: int) -> int:
        """Return `partitions`, or `num.partitions` for -1."""
        return self.settings.num_partitions if partitions == -1 else partitions

    def replication_factor(self, replication_factor: int) -> int:
        """Return `replication_factor`, or `default.replication.factor` for -1."""
        return self.settings.default_replication_factor if replication_factor == -1 else replication_factor

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
            replicas = self.brokers.place_replicas(range(count), self.replication_factor(replication_factor))
        change = TopicCreated(topic_id, name, tuple(map(tuple, replicas)), dict(configs or {}))
        self.storage.propose(change)
        return self.topics.by_id[topic_id]

    def restore_topic(self, topic: TopicState, epochs: Mapping[int, int]) -> None:
        """Restore a topic with its logs and replicas; partitions missing in `epochs` have leader epoch 0."""
        topic.leaders = [self.brokers.first_up(nodes) for nodes in topic.replicas]
        topic.epochs = [epochs.get(partition, 0) for partition in range(len(topic.logs))]
        for log, epoch in zip(topic.logs, topic.epochs, strict=True):
            log.begin_epoch(epoch)
        self.topics.add(topic)

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
            self.topics.planned[name], topic = topic, None
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
        topic = self.topics.get(name) or self.topics.planned.get(name)
        if topic is None:
            topic = self.topics.planned[name] = TopicState(name, ZERO_UUID, configs=dict(INTERNAL_TOPICS[name]))
            partitions, copies = internal_shape(self.settings, name)
            self.topics.extend(topic, self.brokers.place_replicas(range(partitions), copies))
            # the coordinators of transactions begin now
            self.topics.leader_changes += name != OFFSETS_TOPIC
        return topic

    def coordinated_by(self, node_id: int, name: str = OFFSETS_TOPIC) -> dict[int, int]:
        """Return the leader epoch of each partition of an internal topic that a broker coordinates."""
        if name != OFFSETS_TOPIC and name not in self.topics and name not in self.topics.planned:
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
            replicas = self.brokers.place_replicas(range(before, count), len(topic.replicas[0]))
        self.storage.propose(TopicGrown(topic.topic_id, tuple(map(tuple, replicas))))

    def delete_topic(self, topic: TopicState) -> None:
        """Delete a topic with its records. A later topic of this name gets a new id."""
        self.storage.propose(TopicDeleted(topic.topic_id))
