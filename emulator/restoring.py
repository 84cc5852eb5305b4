"""A cluster as its data directory has kept it: topics, records, producers. Groups are loaded by their coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.core.held_log import HeldLog
from koordinator.emulator.core.topic import OFFSETS_TOPIC, Topic

if TYPE_CHECKING:
    from koordinator.emulator.core.cluster import Cluster
    from koordinator.emulator.data_dir import DataDir
    from koordinator.emulator.topic_journal import KeptTopic


def offsets_partitions(data_dir: DataDir) -> int | None:
    """How many partitions `__consumer_offsets` has, whatever the settings say; None if it has not been made."""
    kept = data_dir.topics.by_id.values()
    return next((len(topic.replicas) for topic in kept if topic.name == OFFSETS_TOPIC), None)


def restore_topics(cluster: Cluster, data_dir: DataDir) -> None:
    """Take back all topics with their records; from now on what becomes of them is kept, too."""
    cluster.new_log = HeldLog
    for kept in data_dir.topics.by_id.values():
        topic = Topic(kept.name, kept.topic_id, configs=dict(kept.configs))
        for partition, nodes in enumerate(kept.replicas):
            # nodes that are not there any more lead nothing
            placed = nodes if set(nodes) & set(cluster.brokers) else cluster.place([partition], len(nodes))[0]
            topic.replicas.append(placed)
            topic.logs.append(_log(data_dir, kept, partition))
        cluster.restore_topic(topic, kept.epochs)
    cluster.journal = data_dir.journal
    cluster.producer_ids.resume(data_dir.journal, data_dir.topics.producer_ids_end)


def _log(data_dir: DataDir, kept: KeptTopic, partition: int) -> HeldLog:
    log = HeldLog()
    for header, batch in data_dir.batches(kept, partition):
        log.restore(header, batch)
    # the end may lie before the start: what was behind it has been damaged, and cut off
    start = kept.starts.get(partition, 0)
    log.end = max(log.end, start)
    log.truncate_front(start)
    return log
