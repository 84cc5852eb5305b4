"""The codec of `__share_group_state`: the states of share partitions to and from Kafka's record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire import records as wire
from koordinator.wire.messages.share_state_records import read_key, read_value, write_key, write_value
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.messages.share_state_records import Key, Value

    from ..core.data.log import PartitionLog


def share_state_batch(key: Key, value: Value | None, timestamp: int) -> bytes:
    """Encode a record of a share partition, or its tombstone, as a batch; `timestamp` in ms."""
    encoded = None if value is None else write_value(value)
    return wire.write_batch([wire.Record(timestamp=timestamp, key=write_key(key), value=encoded)])


def share_states_of(log: PartitionLog) -> Iterator[tuple[Key, Value | None]]:
    """Decode the records of share partitions of a partition, in order.

    Skips records of unknown types. Raises Malformed for an invalid key or value, or one of an unknown version.
    """
    for record in log.records():
        if record.key is None:
            raise Malformed(f"offset {record.offset}: a record without a key")
        key = read_key(record.key)
        if key is not None:
            yield key, None if record.value is None else read_value(key, record.value)
