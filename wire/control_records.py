"""Transaction markers: control batches with one record that ends a transaction in a partition (KIP-98).

The key is an int16 version and an int16 type (0 abort, 1 commit); the value is an int16 version and the int32 epoch of
the transaction coordinator. Kafka: `EndTransactionMarker`, `ControlRecordType`.
"""

import struct

from .primitives import Malformed
from .records import Record, read_records, write_batch
from .values import value

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1
_BYTES_MAX = 1024


@value
class Marker:
    """The end of a transaction, and the epoch of the coordinator that decided it."""

    is_commit: bool
    coordinator_epoch: int


def write_marker(marker: Marker, *, producer_id: int, producer_epoch: int, timestamp: int) -> bytes:
    """Return the batch of a marker; `timestamp` in ms."""
    key = _KEY.pack(0, _COMMIT if marker.is_commit else _ABORT)
    record = Record(timestamp=timestamp, key=key, value=_VALUE.pack(0, marker.coordinator_epoch))
    return write_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )


def read_marker(batch: bytes) -> Marker:
    """Return the marker of a control batch. Raises Malformed if it is none."""
    (record, *others) = read_records(batch, _BYTES_MAX)
    if others:
        raise Malformed("a control batch holds one record")
    return read_marker_record(record)


def read_marker_record(record: Record) -> Marker:
    """Return the marker that the record of a control batch holds. Raises Malformed if it is none."""
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        raise Malformed("the record of a control batch has a type and a coordinator epoch")
    _, kind = _KEY.unpack_from(key)
    if kind not in {_ABORT, _COMMIT}:
        raise Malformed(f"a transaction marker has the type 0 or 1, not {kind}")
    return Marker(kind == _COMMIT, _VALUE.unpack_from(value)[1])
