"""The codec of `__transaction_state`: the states of transactional ids to and from Kafka's record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire import records as wire
from koordinator.wire.messages.transactions_topic import read_key, read_value, write_key, write_value
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.messages.transactions_topic import TransactionLogValue

    from ..core.data.log import PartitionLog


def transaction_batch(transactional_id: str, record: TransactionLogValue | None, version: int, timestamp: int) -> bytes:
    """Encode the state of a transactional id, or its tombstone, as a batch; `timestamp` in ms."""
    value = None if record is None else write_value(record, version)
    return wire.write_batch([wire.Record(timestamp=timestamp, key=write_key(transactional_id), value=value)])


def transactions_of(log: PartitionLog) -> Iterator[tuple[str, TransactionLogValue | None]]:
    """Decode the transactional ids of a partition with their states, in order.

    Skips records of unknown types. Raises Malformed for an invalid key or value, or one of an unknown version.
    """
    for record in log.records():
        if record.key is None:
            raise Malformed(f"offset {record.offset}: a record without a key")
        transactional_id = read_key(record.key)
        if transactional_id is not None:
            yield transactional_id, None if record.value is None else read_value(record.value)
