"""The topics that a consumer group subscribes to: their ids, and the hash by which the group notices changes.

Kafka: `Utils.computeTopicHash` and `computeGroupHash`, since 4.1 (KIP-1101).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_group_records import TopicMetadata

from .hash_tables import HashTable
from .xxh3 import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from ...cluster import ClusterState
    from ...data.topic import Topic

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
    """Return the existing topics among these names as records up to 4.0 list them; racks are not emulated there."""
    return tuple(
        TopicMetadata(topic_id=topic.topic_id, topic_name=name, num_partitions=len(topic.logs))
        for name in sorted(set(names))
        if (topic := cluster.topics.get(name)) is not None
    )


def metadata_hash(cluster: ClusterState, names: Iterable[str]) -> int:
    """Return the hash of the existing topics among these names, as a signed number; 0 if there are none."""
    topics = [cluster.topics[name] for name in sorted(set(names), key=_utf16) if name in cluster.topics]
    if not topics:
        return 0
    code = xxh3_64(b"".join(struct.pack("<Q", _topic_hash(cluster, topic)) for topic in topics))
    return code - LONG if code >> 63 else code


def _topic_hash(cluster: ClusterState, topic: Topic) -> int:
    high, low = topic.topic_id.int >> 64, topic.topic_id.int % LONG
    parts = [struct.pack("<bQQ", 0, high, low), _text(topic.name), struct.pack("<i", len(topic.logs))]
    for partition, replicas in enumerate(topic.replicas):
        parts.append(struct.pack("<i", partition))
        racks = (cluster.brokers[node].rack for node in replicas if node in cluster.brokers)
        parts += map(_text, sorted({rack for rack in racks if rack is not None}, key=_utf16))
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le")
    return units + struct.pack("<i", len(units) // 2)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")
