"""The codec of `__consumer_offsets`: coordinator records to and from Kafka's record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire import records as wire
from koordinator.wire.control_records import read_marker_record
from koordinator.wire.messages.offsets_topic import read_key, read_value, write_key, write_value
from koordinator.wire.primitives import Malformed

from ..core.groups.records import CoordinatorRecord, TransactionEnd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.data.log import PartitionLog


def batch_of(
    records: Iterable[CoordinatorRecord],
    timestamp: int,
    producer: tuple[int, int] | None = None,
    offset_version: int = 3,
) -> bytes:
    """Encode records as one batch, each with this timestamp in ms (`CoordinatorRuntime`, `GroupMetadataManager`).

    Records of a transaction have the id and epoch of its `producer`; the sequence is always 0. `offset_version` is as
    in `write_value`.
    """
    encoded = encode_records(records, timestamp, offset_version)
    if producer is None:
        return wire.write_batch(encoded)
    producer_id, epoch = producer
    return wire.write_batch(
        encoded, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, is_transactional=True
    )


def encode_records(records: Iterable[CoordinatorRecord], timestamp: int, offset_version: int = 3) -> list[wire.Record]:
    """Encode the keys and values of records."""
    values = (
        (record.key, None if record.value is None else write_value(record.value, offset_version)) for record in records
    )
    return [wire.Record(timestamp=timestamp, key=write_key(key), value=value) for key, value in values]


def entries_of(log: PartitionLog) -> Iterator[CoordinatorRecord | TransactionEnd]:
    """Decode the coordinator records of a partition and the markers of transactions, in order; see `records_of`."""
    for header, records in log.batches():
        if header.is_control:
            # compaction leaves an empty batch of a marker at the end of a log
            yield from (TransactionEnd(header.producer_id, read_marker_record(each).is_commit) for each in records)
        else:
            yield from records_of(records, header.producer_id if header.is_transactional else None)


def records_of(written: Iterable[wire.Record], producer_id: int | None = None) -> Iterator[CoordinatorRecord]:
    """Decode the coordinator records of a partition, in order; `producer_id` is that of their transaction.

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
            yield CoordinatorRecord(key, None, producer_id)
        else:
            yield CoordinatorRecord(key, read_value(key, record.value), producer_id)
