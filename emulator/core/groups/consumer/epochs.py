"""The epoch of a group: it rises when a subscription or a subscribed topic changes.

Kafka: `GroupMetadataManager.maybeUpdate…`, `consumerGroupFenceMembers`; the hash of the topics since 4.1 (KIP-1101).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..modern.topics import metadata_hash, topic_metadata
from .records import group_record, topics_record

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import ConsumerGroup


def raise_epoch(
    store: GroupStore, group: ConsumerGroup, names: Collection[str], *, changed: bool
) -> tuple[int, list[CoordinatorRecord]]:
    """Return the group epoch, and the records of its change, if any.

    `names` are the subscribed topics, with the changes of the request in progress. The epoch rises with a subscription
    (`changed`), and if the topics differ from those that the group has seen.
    """
    is_hashed = store.dialect.hashes_topics
    code = metadata_hash(store.cluster, names) if is_hashed else 0
    topics = () if is_hashed else topic_metadata(store.cluster, names)
    records: list[CoordinatorRecord] = []
    if set(topics) != set(group.topics):
        # since 4.1 the record of an older release gets a tombstone
        records.append(topics_record(group.id, None if is_hashed else topics))
        changed |= not is_hashed
    epoch = group.epoch + (changed or code != group.metadata_hash)
    group.topics_seen = store.cluster.topics.version, epoch
    if epoch > group.epoch:
        records.append(group_record(group.id, epoch, code))
    return epoch, records
