"""The cluster as everybody sees it: brokers, topics, and Kafka's rules for what a topic may be.

There is one copy of everything: a partition's replicas are names in answers, nothing is replicated. Leader
epochs stay at 0, because leaders never change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.emulator.core.log import PartitionLog
from koordinator.emulator.core.refusal import Refusal, RefusedError
from koordinator.emulator.core.topic_configs import refuse_configs
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from koordinator.emulator.settings import Settings

LEADER_EPOCH = 0
"""The epoch of every leader, for as long as the cluster lives."""

OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state"})
"""Topics clients may read but not write (Kafka's `Topic.INTERNAL_TOPICS`)."""

PARTITIONS_MAX = 10_000
"""The most partitions a topic may have, as in one request to KRaft (`MAX_PARTITIONS_PER_BATCH`)."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_NAME_MAX = 249


@dataclass(slots=True)
class BrokerAddress:
    """Where clients reach a broker. The port is 0 until its listener is bound."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True)
class Topic:
    """A topic: its logs, who is said to hold them (leader first), and the configs set on it."""

    name: str
    topic_id: uuid.UUID
    logs: list[PartitionLog] = field(default_factory=list)
    replicas: list[tuple[int, ...]] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    keyless_turn: int = 0
    """The partition after the one that got the last record without a key from Python."""

    @property
    def is_internal(self) -> bool:
        """Whether clients may not write to it."""
        return self.name in INTERNAL_TOPICS

    def leader(self, partition: int) -> int:
        """The node id of the leader, -1 if there is none."""
        replicas = self.replicas[partition]
        return replicas[0] if replicas else -1

    def log(self, partition: int) -> PartitionLog | None:
        """The log of a partition, or None if there is no such partition."""
        return self.logs[partition] if 0 <= partition < len(self.logs) else None


def illegal_name(name: str) -> str | None:
    """What is wrong with a topic's name, in Kafka's words (`Topic.validate`); None if it is legal."""
    if name == "":
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(name) > _NAME_MAX:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {_NAME_MAX}"
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


class Cluster:
    """Brokers and topics.

    `brokers` is filled by whoever runs them, before topics are made: a topic made earlier has no leader.
    Topic ids come from `new_uuid`.
    """

    def __init__(self, cluster_id: str, settings: Settings, new_uuid: Callable[[], uuid.UUID]) -> None:
        self.cluster_id = cluster_id
        self.settings = settings
        self.brokers: dict[int, BrokerAddress] = {}
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[uuid.UUID, Topic] = {}
        self._new_uuid = new_uuid
        # names that would share a metric name, which is why Kafka refuses the second: '.' and '_' look
        # alike there
        self._by_metric_name: dict[str, str] = {}

    @property
    def controller_id(self) -> int:
        """The broker that is said to be the controller: the lowest id, -1 without brokers."""
        return min(self.brokers, default=-1)

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 if there is no such topic."""
        known = self.topics.get(topic)
        return len(known.logs) if known else 0

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, or None if it does not exist."""
        known = self.topics.get(topic)
        return known.log(partition) if known else None

    def refuse_topic(self, name: str) -> Refusal | None:
        """Why no topic of this name can be made: 17 (illegal, or collides with another) or 36 (exists)."""
        wrong = illegal_name(name)
        if wrong is not None:
            return Refusal(Error.INVALID_TOPIC_EXCEPTION, wrong)
        if name in self.topics:
            return Refusal(Error.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._by_metric_name.get(_metric_name(name))
        if other is not None:
            problem = f"Topic '{name}' collides with existing topic: {other}"
            return Refusal(Error.INVALID_TOPIC_EXCEPTION, problem)
        return None

    def refuse_shape(self, partitions: int, replication_factor: int) -> Refusal | None:
        """Why a topic cannot have so many partitions (37) or replicas (38); -1 is the broker's default."""
        if partitions == 0 or partitions < -1:
            return Refusal(Error.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
        if partitions > PARTITIONS_MAX:
            return Refusal(Error.INVALID_PARTITIONS, f"Number of partitions must not exceed {PARTITIONS_MAX}.")
        if replication_factor == 0 or replication_factor < -1:
            return Refusal(
                Error.INVALID_REPLICATION_FACTOR,
                "Replication factor was set to an invalid non-positive value.",
            )
        wanted = self.replication_factor(replication_factor)
        if wanted > max(1, len(self.brokers)):
            return Refusal(
                Error.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {wanted} time(s): The target replication factor of {wanted} "
                f"cannot be reached because only {len(self.brokers)} broker(s) are registered.",
            )
        return None

    def refuse_assignment(self, assignment: Sequence[Sequence[int]]) -> Refusal | None:
        """Why replicas cannot be placed like this (39); the index in `assignment` is the partition."""
        for partition, replicas in enumerate(assignment):
            if not replicas:
                problem = f"The manual partition assignment for partition {partition} includes no replicas."
            elif len(set(replicas)) != len(replicas):
                problem = f"The manual partition assignment includes the partition {partition} with a broker twice."
            elif len(replicas) != len(assignment[0]):
                problem = "The manual partition assignment includes partitions with different replication factors."
            elif unknown := [node for node in replicas if node not in self.brokers]:
                problem = f"The manual partition assignment includes broker {unknown[0]}, which is not registered."
            else:
                continue
            return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem)
        return None

    def batch_bytes_max(self, topic: Topic) -> int:
        """The size of the largest batch a topic takes: `max.message.bytes`, else `message.max.bytes`."""
        own = topic.configs.get("max.message.bytes")
        return self.settings.message_max_bytes if own is None else int(own)

    def partitions_or_default(self, partitions: int) -> int:
        """`partitions`, or `num.partitions` for -1."""
        return self.settings.num_partitions if partitions == -1 else partitions

    def replication_factor(self, replication_factor: int) -> int:
        """`replication_factor`, or `default.replication.factor` for -1."""
        return self.settings.default_replication_factor if replication_factor == -1 else replication_factor

    def place(self, partitions: Iterable[int], replication_factor: int) -> list[tuple[int, ...]]:
        """Replicas for partitions, leaders taking turns."""
        nodes = sorted(self.brokers)
        copies = min(replication_factor, len(nodes))
        return [tuple(nodes[(partition + copy) % len(nodes)] for copy in range(copies)) for partition in partitions]

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
        replication_factor: int = -1,
    ) -> Topic:
        """Make a topic; -1 takes the broker's default. Raises RefusedError where Kafka would refuse it."""
        refusal = (
            self.refuse_topic(name)
            or self.refuse_shape(partitions, replication_factor)
            or refuse_configs(configs or {})
            or (self.refuse_assignment(replicas) if replicas is not None else None)
        )
        if refusal is not None:
            raise RefusedError(refusal)
        topic = Topic(name, self._new_uuid(), configs=dict(configs or {}))
        if replicas is None:
            count = self.partitions_or_default(partitions)
            replicas = self.place(range(count), self.replication_factor(replication_factor))
        self.topics[name] = self.topics_by_id[topic.topic_id] = topic
        self._by_metric_name[_metric_name(name)] = name
        self._add_partitions(topic, replicas)
        return topic

    def auto_create_topic(self, name: str) -> Refusal | None:
        """Make a topic because somebody asked for its metadata; returns why not, if it cannot be."""
        refusal = self.refuse_topic(name)
        if refusal is None:
            if name == OFFSETS_TOPIC:
                self.offsets_topic()
            else:
                self.create_topic(name)
        return refusal

    def offsets_topic(self) -> Topic:
        """`__consumer_offsets`, made when the first group writes to it, or is looked for."""
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is None:
            configs = {"cleanup.policy": "compact", "compression.type": "producer"}
            topic = self.create_topic(OFFSETS_TOPIC, self.settings.offsets_topic_num_partitions, configs)
        return topic

    def grow_topic(self, topic: Topic, count: int, replicas: Sequence[Sequence[int]] | None = None) -> None:
        """Give a topic `count` partitions in all, more than it has; `replicas` are those of the new ones."""
        before = len(topic.logs)
        assert count > before, f"{topic.name}: {count} partitions are not more than {before}"
        if replicas is None:
            replicas = self.place(range(before, count), len(topic.replicas[0]))
        self._add_partitions(topic, replicas)

    def _add_partitions(self, topic: Topic, replicas: Sequence[Sequence[int]]) -> None:
        topic.replicas += (tuple(nodes) for nodes in replicas)
        topic.logs += (PartitionLog() for _ in replicas)

    def delete_topic(self, topic: Topic) -> None:
        """Forget a topic with everything in it. A new one of this name gets a new id."""
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        del self._by_metric_name[_metric_name(topic.name)]


def refuse_epoch(current_leader_epoch: int) -> Error:
    """What a client gets for the leader epoch it knows: 74 if behind, 75 if ahead; -1 is any (KIP-320)."""
    if current_leader_epoch in (-1, LEADER_EPOCH):
        return Error.NONE
    return Error.FENCED_LEADER_EPOCH if current_leader_epoch < LEADER_EPOCH else Error.UNKNOWN_LEADER_EPOCH


def _metric_name(topic: str) -> str:
    return topic.replace(".", "_")
