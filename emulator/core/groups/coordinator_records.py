"""Records of `__consumer_offsets` as values, and the partition of each group; `wire` encodes them."""

from __future__ import annotations

import struct

from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from koordinator.wire.values import value

Key = OffsetCommitKey | GroupMetadataKey
Value = OffsetCommitValue | GroupMetadataValue


@value
class CoordinatorRecord:
    """A record of `__consumer_offsets`; a tombstone if it has no value."""

    key: Key
    value: Value | None


def java_string_hash(text: str) -> int:
    """Return `String.hashCode()`: computed over UTF-16 code units, wrapping to a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(units) // 2}H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def offsets_partition(group_id: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that stores a group; its leader is the group's coordinator.

    Kafka's `Utils.abs(groupId.hashCode()) % n`: the one number without a positive counterpart becomes 0.
    """
    value = java_string_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partitions
