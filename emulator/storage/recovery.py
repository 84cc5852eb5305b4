"""A cluster as its data directory has kept it: topics, records, producers. Groups are loaded by their coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.data.topic import OFFSETS_TOPIC, Topic
from ..core.data.unflushed_log import UnflushedLog

if TYPE_CHECKING:
    from ..core.cluster import ClusterState
    from .data_dir import DataDir
    from .metadata_journal import JournaledTopic


def offsets_partitions(data_dir: DataDir) -> int | None:
    """How many partitions `__consumer_offsets` has, whatever the settings say; None if it has not been made."""
    kept = data_dir.topics.by_id.values()
    return next((len(topic.replicas) for topic in kept if topic.name == OFFSETS_TOPIC), None)


def restore_topics(cluster: ClusterState, data_dir: DataDir) -> None:
    """Take back all topics with their records; from now on what becomes of them is kept, too."""
    cluster.new_log = UnflushedLog
    for kept in data_dir.topics.by_id.values():
        topic = Topic(kept.name, kept.topic_id, configs=dict(kept.configs))
        for partition, nodes in enumerate(kept.replicas):
            # nodes that are not there any more lead nothing
            placed = nodes if set(nodes) & set(cluster.brokers) else cluster.place_replicas([partition], len(nodes))[0]
            topic.replicas.append(placed)
            topic.logs.append(_log(data_dir, kept, partition))
        cluster.restore_topic(topic, kept.epochs)
    cluster.journal = data_dir.journal
    cluster.producer_ids.resume(data_dir.journal, data_dir.topics.producer_ids_end)


def _log(data_dir: DataDir, kept: JournaledTopic, partition: int) -> UnflushedLog:
    log = UnflushedLog()
    for header, batch in data_dir.batches(kept, partition):
        log.restore(header, batch)
    # the end may lie before the start: what was behind it has been damaged, and cut off
    start = kept.starts.get(partition, 0)
    log.end = max(log.end, start)
    log.truncate_front(start)
    return log
