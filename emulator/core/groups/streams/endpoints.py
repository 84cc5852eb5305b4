"""The input partitions of tasks, by which applications find the member that has a key (interactive queries).

Kafka: `EndpointToPartitionsManager` (KIP-1071, KIP-535).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.streams_group_heartbeat import TopicPartition

from ...java.hash_tables import HashTable
from .partition_counts import broken
from .tasks import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .tasks import Task
    from .topology import ConfiguredSubtopology


def input_partitions(
    tasks: Iterable[Task],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    partition_counts: Mapping[str, int],
    *,
    only_existing: bool,
) -> tuple[TopicPartition, ...]:
    """Return the partitions of source and repartition topics that tasks read.

    `only_existing` (since 4.4): a topic has the partitions below its count, and is left out if there are none. Before,
    a topic with fewer partitions than there are tasks gets the first ones of them. Subtopologies are in ascending
    order: Kafka's order of active tasks is another one in each process. Raises RefusedError with UNKNOWN_SERVER_ERROR
    if a topic does not exist.
    """
    found = []
    for row in rows_of(tasks):
        subtopology = subtopologies[row.subtopology_id]
        topics = HashTable.copy_of(subtopology.source_topics)
        for topic in subtopology.repartition_source_topics:
            topics.add(topic)
        for topic in topics:
            if topic not in partition_counts:
                raise broken(f"Topic {topic} not found in metadata image")
            listed = _partitions(row.partitions, partition_counts[topic], only_existing=only_existing)
            if listed or not only_existing:
                found.append(TopicPartition(topic=topic, partitions=listed))
    return tuple(found)


def _partitions(ascending: tuple[int, ...], count: int, *, only_existing: bool) -> tuple[int, ...]:
    if only_existing:
        return tuple(partition for partition in ascending if partition < count)
    return ascending[:count] if count < len(ascending) else tuple(HashTable(ascending))
