"""The codec of `__consumer_offsets`: coordinator records to and from Kafka's record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire import records as wire
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
    read_key,
    read_value,
    write_key,
    write_value,
)
from koordinator.wire.primitives import Malformed

from ..core.groups.records import CoordinatorRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def batch_of(records: Iterable[CoordinatorRecord], timestamp: int) -> bytes:
    """Encode records as one batch, each with this timestamp in ms (`CoordinatorRuntime`, `GroupMetadataManager`)."""
    return wire.write_batch(encode_records(records, timestamp))


def encode_records(records: Iterable[CoordinatorRecord], timestamp: int) -> list[wire.Record]:
    """Encode the keys and values of records."""
    values = ((record.key, None if record.value is None else write_value(record.value)) for record in records)
    return [wire.Record(timestamp=timestamp, key=write_key(key), value=value) for key, value in values]


def records_of(written: Iterable[wire.Record]) -> Iterator[CoordinatorRecord]:
    """Decode the coordinator records of a partition, in order.

    Skips records of unknown types (KIP-915). Raises Malformed for an invalid key or value, or one of an unknown
    version; the partition cannot be loaded then.
    """
    for record in written:
        if record.key is None:
            raise Malformed(f"offset {record.offset}: a record without a key")
        key = read_key(record.key)
        if key is None:
            continue
        if record.value is None:
            yield CoordinatorRecord(key, None)
        elif isinstance(key, GroupMetadataKey):
            yield CoordinatorRecord(key, read_value(GroupMetadataValue, record.value))
        else:
            yield CoordinatorRecord(key, read_value(OffsetCommitValue, record.value))
