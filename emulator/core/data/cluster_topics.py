"""The topics of a cluster, by name and by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .log import PartitionLog
from .topic import INTERNAL_TOPICS, NO_LEADER, TopicState
from .topic_rules import MetricNames

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from ..brokers import Brokers
    from .features import Features

DELETED_KEPT = 10_000
"""The number of deleted topics whose names are kept."""


class ClusterTopics(dict[str, TopicState]):
    """The topics that clients see, by name; and those that they do not see.

    `ClusterState.apply` changes them. `defaults` are the configs that topics inherit from all brokers.
    """

    def __init__(self, brokers: Brokers, features: Features, defaults: dict[str, str]) -> None:
        super().__init__()
        self._brokers = brokers
        self._features = features
        self.defaults = defaults
        self.by_id: dict[uuid.UUID, TopicState] = {}
        self.deleted: dict[uuid.UUID, str] = {}
        """The names of deleted topics by id, the last DELETED_KEPT of them: the trace names them."""
        self.hidden: dict[str, TopicState] = {}
        """Read-only topics of the emulator, served by name but never listed."""
        self.planned: dict[str, TopicState] = {}
        """The internal topics whose coordinators are known before they exist."""
        self.unled: dict[str, TopicState] = {}
        """Topics in ZooKeeper that brokers do not know, because no partition of them has ever had a leader."""
        self.queued_deletions: dict[str, set[int]] = {}
        """Deleted topics whose names ZooKeeper keeps, until these brokers with replicas are up."""
        self.version = self.newest_version = 0
        """Counts changes of topics and their partitions, so that consumer groups notice them."""
        self.leader_changes = 0
        """Counts changes of leaders and configs, so that nodes notice them."""
        self.metric_names = MetricNames()

    def find(self, name: str) -> TopicState | None:
        """Return the topic of this name, hidden ones included, or None."""
        return self.get(name) or self.hidden.get(name)

    def find_id(self, topic_id: uuid.UUID) -> TopicState | None:
        """Return the topic of this id, hidden ones included, or None."""
        hidden = (topic for topic in self.hidden.values() if topic.topic_id == topic_id)
        return self.by_id.get(topic_id) or next(hidden, None)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """Return the name of the topic that has or had this id; None if it is unknown."""
        topic = self.find_id(topic_id)
        return self.deleted.get(topic_id) if topic is None else topic.name

    def everything(self) -> list[TopicState]:
        """Return all topics, with hidden ones and those that are planned."""
        return [*self.values(), *self.hidden.values(), *self.planned.values(), *self.unled.values()]

    def partition_count(self, name: str) -> int:
        """Return the number of partitions of a topic, 0 if it does not exist."""
        found = self.find(name)
        return len(found.logs) if found else 0

    def log(self, name: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition, or None if it does not exist."""
        found = self.find(name)
        return found.log(partition) if found else None

    def add(self, topic: TopicState) -> None:
        """Add a topic with its partitions."""
        self.version += 1
        self.newest_version = self.version
        topics = self if topic.is_known else self.unled
        self.by_id[topic.topic_id] = topics[topic.name] = topic
        if not topic.is_known:
            return
        self.metric_names.add(topic.name)
        if not topic.is_internal:
            topic.defaults = self.defaults
        if topic.name in INTERNAL_TOPICS:
            # if a client has created it, it has a partition count of its own
            self.leader_changes += topic is not self.planned.pop(topic.name, None)

    def remove(self, topic: TopicState) -> None:
        """Remove a topic; its name is kept for a while."""
        self.version += 1
        del self[topic.name]
        del self.by_id[topic.topic_id]
        self.deleted[topic.topic_id] = topic.name
        if len(self.deleted) > DELETED_KEPT:
            del self.deleted[next(iter(self.deleted))]
        self.metric_names.remove(topic.name)
        # its partitions have lost their leaders
        self.leader_changes += 1

    def extend(self, topic: TopicState, replicas: Sequence[Sequence[int]]) -> None:
        """Add partitions with these replicas to a topic."""
        self.version += 1
        for nodes in replicas:
            log = PartitionLog()
            log.begin_epoch(0)
            topic.logs.append(log)
            topic.replicas.append(tuple(nodes))
            topic.leaders.append(self._brokers.first_up(nodes))
            topic.epochs.append(0)
        topic.unknown = self._unknown_partitions(topic)

    def _unknown_partitions(self, topic: TopicState) -> set[int]:
        """Return the partitions that brokers do not know: with ZooKeeper the controller tells of those with leaders.

        All are known while no broker is up.
        """
        if self._brokers.controller_id == -1 or not self._features.dialect.administers_with_zookeeper:
            return set()
        epochs = zip(topic.leaders, topic.epochs, strict=True)
        return {partition for partition, (leader, epoch) in enumerate(epochs) if leader == NO_LEADER and not epoch}

    def announce(self) -> None:
        """List the topics that have a leader by now, and forget the names whose replicas are all up (ZooKeeper)."""
        for topic in [topic for topic in self.unled.values() if topic.is_known]:
            self.add(self.unled.pop(topic.name))
        queued = self.queued_deletions.items()
        self.queued_deletions = {name: nodes for name, nodes in queued if not all(map(self._brokers.is_up, nodes))}
