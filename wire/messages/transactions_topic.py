"""The records of `__transaction_state`.

Key and value each start with an int16 version; a null value is a tombstone. Values are written in version 1 (flexible)
with `transaction.version` 1 or later, else in version 0 (KIP-890).
"""

from ..codec import decode, encode_versioned, read_version
from ..primitives import Malformed
from ..schema import array, entity, int8, int16, int32, int64, message, string


@message(key=None, versions="0", flexible="none")
class TransactionLogKey:
    """The key of a transactional id."""

    transactional_id: str = string()


@entity
class PartitionsSchema:
    """A topic, with the partitions in the transaction."""

    topic: str = string()
    partition_ids: tuple[int, ...] = array(int32)


@message(key=None, versions="0-1", flexible="1+")
class TransactionLogValue:
    """The state of a transactional id; transaction_partitions is null in state Empty, times are in ms."""

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", tag=0, default=-1, ignorable=True)
    next_producer_id: int = int64("1+", tag=1, default=-1, ignorable=True)
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: tuple[PartitionsSchema, ...] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2, ignorable=True)


def write_key(transactional_id: str) -> bytes:
    """Return the key of a record."""
    return encode_versioned(TransactionLogKey(transactional_id=transactional_id), 0)


def read_key(data: bytes) -> str | None:
    """Return the transactional id of a key, or None for an unknown type of record. Raises Malformed."""
    if read_version(data) != 0:
        return None
    return decode(TransactionLogKey, 0, data[2:]).transactional_id


def write_value(value: TransactionLogValue, version: int) -> bytes:
    """Return the value of a record in version 0 or 1."""
    return encode_versioned(value, version)


def read_value(data: bytes) -> TransactionLogValue:
    """Return the value of a record of any known version. Raises Malformed."""
    version = read_version(data)
    if version not in {0, 1}:
        raise Malformed(f"TransactionLogValue has the version {version}")
    return decode(TransactionLogValue, version, data[2:])
