"""The coordinator's records as bytes: batches as Kafka writes them to `__consumer_offsets`, and reads them again."""

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
    """One batch of all these records, each with the same time in ms (`CoordinatorRuntime`, `GroupMetadataManager`)."""
    return wire.write_batch(
        [
            wire.Record(
                timestamp=timestamp,
                key=write_key(record.key),
                value=None if record.value is None else write_value(record.value),
            )
            for record in records
        ]
    )


def records_of(written: Iterable[wire.Record]) -> Iterator[CoordinatorRecord]:
    """What a coordinator remembers of the records in its partition, in their order.

    Records of a type it does not know are passed over (KIP-915). Malformed for a key or value that cannot be read, or
    whose version is not known: the partition cannot be loaded then.
    """
    for each in written:
        if each.key is None:
            raise Malformed(f"offset {each.offset}: a record without a key")
        key = read_key(each.key)
        if key is None:
            continue
        if each.value is None:
            yield CoordinatorRecord(key, None)
        elif isinstance(key, GroupMetadataKey):
            yield CoordinatorRecord(key, read_value(GroupMetadataValue, each.value))
        else:
            yield CoordinatorRecord(key, read_value(OffsetCommitValue, each.value))
