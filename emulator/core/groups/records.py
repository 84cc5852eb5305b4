"""Records of `__consumer_offsets` as values, and the partition of each group; `wire` encodes them.

Kafka: `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import OffsetCommitKey, OffsetCommitValue
from koordinator.wire.values import value

from ..java.string_hash import java_string_hash

if TYPE_CHECKING:
    from koordinator.wire.messages.offsets_topic import Key, Value

    from .group import BaseGroup


@value
class CoordinatorRecord:
    """A record of `__consumer_offsets`; a tombstone if it has no value. A transaction's has a producer id."""

    key: Key
    value: Value | None
    producer_id: int | None = None


@value
class TransactionEnd:
    """A marker in `__consumer_offsets`: the producer's pending offsets are committed or dropped."""

    producer_id: int
    is_commit: bool


def offsets_partition(group_id: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that stores a group; its leader is the group's coordinator.

    Kafka's `Utils.abs(groupId.hashCode()) % n`: the one number without a positive counterpart becomes 0.
    """
    code = java_string_hash(group_id)
    return 0 if code == -(1 << 31) else abs(code) % partitions


def offset_record(group: BaseGroup, topic: str, partition: int, committed: OffsetCommitValue) -> CoordinatorRecord:
    """Return the record of one committed offset."""
    return CoordinatorRecord(OffsetCommitKey(group=group.id, topic=topic, partition=partition), committed)


def offset_tombstone(group: BaseGroup, topic: str, partition: int) -> CoordinatorRecord:
    """Return the tombstone of one committed offset."""
    return CoordinatorRecord(OffsetCommitKey(group=group.id, topic=topic, partition=partition), None)
