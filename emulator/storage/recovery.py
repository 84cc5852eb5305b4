"""Recovery of a cluster from its data directory: topics, records and producers. Coordinators load groups themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.data.log import PartitionLog
from ..core.data.topic import OFFSETS_TOPIC, TopicState

if TYPE_CHECKING:
    from ..core.cluster import ClusterState
    from .data_dir import DataDir
    from .metadata_journal import JournaledTopic


def offsets_partitions(data_dir: DataDir) -> int | None:
    """Return the partition count of the stored `__consumer_offsets`; None if the topic does not exist."""
    stored = data_dir.topics.by_id.values()
    return next((len(topic.replicas) for topic in stored if topic.name == OFFSETS_TOPIC), None)


def restore_topics(cluster: ClusterState, data_dir: DataDir) -> None:
    """Restore all topics with their records; the cluster writes later changes to the data directory."""
    cluster.storage.store = data_dir
    for stored in data_dir.topics.by_id.values():
        topic = TopicState(stored.name, stored.topic_id, configs=dict(stored.configs))
        for partition, nodes in enumerate(stored.replicas):
            # a cluster with fewer nodes places partitions of missing nodes again
            placed = (
                nodes
                if set(nodes) & set(cluster.brokers)
                else cluster.brokers.place_replicas([partition], len(nodes))[0]
            )
            topic.replicas.append(placed)
            topic.logs.append(_restore_log(data_dir, stored, partition))
        cluster.restore_topic(topic, stored.epochs)
    cluster.producer_ids.resume(data_dir.topics.producer_ids_end)
    for name, level in data_dir.topics.feature_levels.items():
        # the release may be another one
        if level in cluster.features.supported.get(name, ()):
            cluster.features.set_level(name, level)
    cluster.apply(data_dir.topics.configured())
    cluster.apply(data_dir.topics.clients.changes())


def _restore_log(data_dir: DataDir, stored: JournaledTopic, partition: int) -> PartitionLog:
    log = PartitionLog()
    for header, batch in data_dir.batches(stored, partition):
        log.restore(header, batch)
    # damage may have cut off records beyond the start offset
    start = stored.starts.get(partition, 0)
    log.end = max(log.end, start)
    log.truncate_front(start)
    return log
