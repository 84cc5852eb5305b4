"""Kafka's rules for the partitions and replicas of a topic (`ReplicationControlManager`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...config.settings import PARTITIONS_MAX
from ..refusal import Refusal
from .topic import illegal_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ..cluster import ClusterState


def refuse_hidden_topic(name: str) -> Refusal:
    """Return the refusal of any change to a topic of the emulator: INVALID_TOPIC_EXCEPTION."""
    return Refusal(Error.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' is the emulator's own, and read-only.")


def refuse_name(cluster: ClusterState, name: str, together: Collection[str] = ()) -> Refusal | None:
    """Return why no topic can be created.

    INVALID_TOPIC_EXCEPTION if the name is illegal or collides with one not created `together`, or TOPIC_ALREADY_EXISTS.
    """
    if (problem := illegal_name(name)) is not None:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, problem)
    if name in cluster.topics.hidden:
        return refuse_hidden_topic(name)
    if any(name in names for names in (cluster.topics, cluster.topics.unled, cluster.topics.queued_deletions)):
        return Refusal(Error.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = next((each for each in cluster.topics.metric_names.colliding(name) if each not in together), None)
    if other is not None:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
    return None


def refuse_shape(cluster: ClusterState, partitions: int, replication_factor: int) -> Refusal | None:
    """Return why a topic cannot have this many partitions or replicas; -1 is the broker's default."""
    if replication_factor == 0 or replication_factor < -1:
        return Refusal(
            Error.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions == 0 or partitions < -1:
        return Refusal(Error.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if partitions > PARTITIONS_MAX:
        return Refusal(Error.INVALID_PARTITIONS, f"Number of partitions must not exceed {PARTITIONS_MAX}.")
    replicas = cluster.replication_factor(replication_factor)
    if replicas > max(1, len(cluster.brokers)):
        cordons = cluster.features.dialect.cordons_log_dirs
        cordoned = " or some brokers have all their log directories cordoned" if cordons else ""
        return Refusal(
            Error.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} "
            f"cannot be reached because only {len(cluster.brokers)} broker(s) are registered{cordoned}.",
        )
    return None


def refuse_assignment(cluster: ClusterState, assignment: Sequence[Sequence[int]], factor: int) -> Refusal | None:
    """Return why partitions with this number of replicas cannot be placed like this."""
    for replicas in assignment:
        unknown = [node for node in sorted(replicas) if node not in cluster.brokers]
        repeated = [node for node in sorted(replicas) if replicas.count(node) > 1]
        if not replicas:
            problem = "an empty replica list."
        elif unknown and not (repeated and repeated[0] < unknown[0]):
            problem = f"broker {unknown[0]}, but no such broker is registered."
        elif repeated:
            problem = f"the broker {repeated[0]} more than once."
        elif len(replicas) != factor:
            problem = (
                f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
                f"which have {factor} replica(s)."
            )
        else:
            continue
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {problem}")
    return None


def created_together(cluster: ClusterState, names: Iterable[str]) -> frozenset[str]:
    """Return the topics of a request that do not exist: they do not collide with each other.

    KRaft validates all names before it creates a topic (`ReplicationControlManager.createTopics`). A broker with
    ZooKeeper creates one topic after the other, so there this is empty.
    """
    if cluster.features.dialect.administers_with_zookeeper:
        return frozenset()
    return frozenset(name for name in names if name not in cluster.topics)


class MetricNames:
    """The names of topics in metrics, where `.` and `_` are equal: Kafka refuses a topic that collides with others."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, None]] = {}

    def add(self, topic: str) -> None:
        """Add a topic."""
        self._topics.setdefault(_metric_name(topic), {})[topic] = None

    def remove(self, topic: str) -> None:
        """Remove a topic."""
        del self._topics[_metric_name(topic)][topic]

    def colliding(self, topic: str) -> Iterable[str]:
        """Return the topics that a new one collides with."""
        return self._topics.get(_metric_name(topic), ())


def _metric_name(topic: str) -> str:
    return topic.replace(".", "_")
