"""The topics that a consumer group subscribes to: their ids, and the hash by which the group notices changes.

Kafka: `Utils.computeTopicHash` and `computeGroupHash`, since 4.1 (KIP-1101).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_group_records import PartitionMetadata, TopicMetadata

from ...java.hash_tables import HashTable
from ...java.xxh3 import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from uuid import UUID

    from ...cluster import ClusterState
    from ...data.topic import TopicState

LONG = 1 << 64


def topic_ids(cluster: ClusterState, names: Iterable[str], matches: Collection[str] = ()) -> tuple[UUID, ...]:
    """Return the ids of the existing topics among names and `matches` of a pattern, in the order of Kafka's tables.

    The larger table comes first (`UnionSet`).
    """
    ordered = list(HashTable.copy_of(names))
    if matches:
        found = list(HashTable.copy_of(matches))
        ordered = list(dict.fromkeys([*ordered, *found] if len(ordered) > len(found) else [*found, *ordered]))
    return tuple(cluster.topics[name].topic_id for name in ordered if name in cluster.topics)


def topic_metadata(cluster: ClusterState, names: Iterable[str]) -> tuple[TopicMetadata, ...]:
    """Return the existing topics among these names as records up to 4.0 list them."""
    return tuple(
        TopicMetadata(
            topic_id=topic.topic_id,
            topic_name=name,
            num_partitions=len(topic.logs),
            partition_metadata=_partition_racks(cluster, topic)
            if cluster.features.dialect.consumer_groups_list_racks
            else (),
        )
        for name in sorted(set(names))
        if (topic := cluster.topics.get(name)) is not None
    )


def _partition_racks(cluster: ClusterState, topic: TopicState) -> tuple[PartitionMetadata, ...]:
    """Return the racks of each partition whose replicas have any."""
    rack_of = _rack_of(cluster)
    racks = [HashTable(rack_of[node] for node in nodes if node in rack_of) for nodes in topic.replicas]
    return tuple(PartitionMetadata(partition=at, racks=tuple(each)) for at, each in enumerate(racks) if each)


def _rack_of(cluster: ClusterState) -> dict[int, str]:
    return {node: broker.rack for node, broker in cluster.brokers.items() if broker.rack is not None}


def metadata_hash(cluster: ClusterState, names: Iterable[str]) -> int:
    """Return the hash of the existing topics among these names, as a signed number; 0 if there are none."""
    topics = [cluster.topics[name] for name in sorted(set(names), key=_utf16) if name in cluster.topics]
    if not topics:
        return 0
    racks = tuple(_rack_of(cluster).items())
    hashes = (_topic_hash(topic.topic_id, topic.name, tuple(topic.replicas), racks) for topic in topics)
    code = xxh3_64(b"".join(struct.pack("<Q", each) for each in hashes))
    return code - LONG if code >> 63 else code


@lru_cache(maxsize=256)
def _topic_hash(topic_id: UUID, name: str, replicas: Sequence[Sequence[int]], racks: Sequence[tuple[int, str]]) -> int:
    """Return the hash of a topic with the replicas of each partition; `racks` are those of the brokers that have one.

    Kafka keeps the hashes of topics, too (`topicHashCache`): every member that joins asks for them.
    """
    rack_of = dict(racks)
    parts = [struct.pack("<bQQ", 0, topic_id.int >> 64, topic_id.int % LONG), _text(name)]
    parts.append(struct.pack("<i", len(replicas)))
    for partition, nodes in enumerate(replicas):
        parts.append(struct.pack("<i", partition))
        for rack in sorted((rack_of[node] for node in nodes if node in rack_of), key=_utf16):
            # its length comes before it, too
            parts += [struct.pack("<i", len(rack.encode("utf-16-le")) // 2), _text(rack)]
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le")
    return units + struct.pack("<i", len(units) // 2)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")
