"""The leaders of partitions: the broker that serves each, and its leader epoch.

Each log exists once; nothing is replicated. A partition's replicas are the brokers that may lead it, and its leader is
the broker that serves it. Every change of leader raises the leader epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from .metadata_changes import PartitionLed
from .topic import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..brokers import Brokers
    from .cluster_topics import ClusterTopics
    from .features import Features
    from .log import PartitionLog
    from .storage import Storage
    from .topic import TopicState


class Leaders:
    """The leaders of a cluster's partitions; they are values of the topics."""

    def __init__(self, brokers: Brokers, topics: ClusterTopics, storage: Storage, features: Features) -> None:
        self._brokers = brokers
        self._topics = topics
        self._storage = storage
        self._features = features

    def check(
        self,
        topic: TopicState,
        partition: int,
        node_id: int,
        current_leader_epoch: int = -1,
        *,
        by_replica: bool = False,
    ) -> Error:
        """Return why a broker does not serve a partition, as its leader or `by_replica` as any replica.

        NOT_LEADER_OR_FOLLOWER, or REPLICA_NOT_AVAILABLE in 2.4; FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH for a
        wrong epoch.

        `current_leader_epoch` is the client's, -1 if unknown (KIP-320). Only replicas check it, and before the leader:
        other brokers do not know the epoch (`ReplicaManager.getPartitionOrError`, `Partition.getLocalLog`).
        """
        epoch = topic.epochs[partition]
        is_replica = node_id in topic.replicas[partition]
        if current_leader_epoch not in {-1, epoch} and is_replica:
            return Error.FENCED_LEADER_EPOCH if current_leader_epoch < epoch else Error.UNKNOWN_LEADER_EPOCH
        if topic.leaders[partition] == node_id or (by_replica and is_replica):
            return Error.NONE
        is_unavailable = by_replica and self._features.dialect.replicas_are_unavailable
        return Error.REPLICA_NOT_AVAILABLE if is_unavailable else Error.NOT_LEADER_OR_FOLLOWER

    def led_log(self, name: str, partition: int, node_id: int, current_leader_epoch: int = -1) -> PartitionLog | Error:
        """Return the log of a partition, or why a broker does not serve it: as `check`, or it does not exist."""
        topic, log = self._topics.find(name), self._topics.log(name, partition)
        if topic is None or log is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        return self.check(topic, partition, node_id, current_leader_epoch) or log

    def move(self, topic: TopicState, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition, in a new epoch even if it leads it already.

        A broker that is no replica replaces the current leader among the replicas.
        """
        before, replicas = topic.leaders[partition], topic.replicas[partition]
        if node_id not in replicas:
            replaced = before if before in replicas else next(iter(replicas), None)
            topic.replicas[partition] = (node_id, *(replica for replica in replicas if replica != replaced))
        self._set({(topic.name, partition): (topic, node_id)})

    def truncate(self, topic: TopicState, partition: int, offset: int) -> None:
        """Delete the batches that reach `offset`, and begin a new epoch: as if a replica without them was elected.

        Raises RefusedError with KAFKA_STORAGE_ERROR if the disk fails.
        """
        self._storage.truncate(topic, partition, offset)
        self.move(topic, partition, topic.leaders[partition])

    def elect(self) -> None:
        """Give every partition without a live leader to its first replica that is up; leaders never move back."""
        if self._brokers.controller_id != -1 or not self._features.dialect.leaders_outlive_controller:
            elected = {
                (topic.name, partition): (topic, first)
                for topic in self._topics.everything()
                for partition, leader in enumerate(topic.leaders)
                if not self._brokers.is_up(leader)
                and (first := self._brokers.first_up(topic.replicas[partition])) != leader
            }
            self._set(elected)
            self._topics.announce()

    def replicas_changed(self, topic: TopicState, partition: int) -> None:
        """Store the replicas of a partition after a reassignment that has begun; its leader remains."""
        self._topics.leader_changes += 1
        self._storage.led([_led(topic, partition)])

    def _set(self, leaders: Mapping[tuple[str, int], tuple[TopicState, int]]) -> None:
        changes: list[PartitionLed] = []
        for (_, partition), (topic, node_id) in leaders.items():
            self._topics.leader_changes += 1
            topic.leaders[partition] = node_id
            topic.epochs[partition] += 1
            if node_id != NO_LEADER:
                topic.unknown.discard(partition)
                topic.logs[partition].begin_epoch(topic.epochs[partition])
            if topic.name in self._topics:
                changes.append(_led(topic, partition))
        self._storage.led(changes)


def _led(topic: TopicState, partition: int) -> PartitionLed:
    # all brokers are up after a restart, so that each reassignment ends
    return PartitionLed(topic.topic_id, partition, topic.lasting_replicas(partition), topic.epochs[partition])
