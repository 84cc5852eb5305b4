"""The checks of a batch before it is appended (`UnifiedLog.analyzeAndValidateRecords`, then `LogValidator`).

The greatest timestamp is counted again, and with `message.timestamp.type=LogAppendTime` the batch gets the time of the
log. Otherwise a batch is stored as it was sent: `compression.type` has no effect. Batches that expand to more than a
lookup by time opens, or whose codec is not installed, are not read.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING

from koordinator.wire.compression import Codec, MissingCodec, Oversized
from koordinator.wire.errors import Error
from koordinator.wire.messages.produce import BatchIndexAndErrorMessage
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import (
    Overlong,
    Undecodable,
    check_crc,
    read_header,
    read_records,
    with_timestamp,
)

from ..dialect import dialect_of
from ..java.longs import as_long
from .log import LOOKUP_BYTES_MAX, LOOKUP_RECORDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from koordinator.wire.messages.produce import ProduceRequest
    from koordinator.wire.records import BatchHeader, Record

    from ..cluster import ClusterState
    from .topic import TopicState

MAGIC_2_SINCE = 3
"""The first version in which a partition's records are exactly one batch of magic 2 (KIP-98)."""

ZSTD_SINCE = 7
"""The first version whose clients may send zstd (KIP-110); before, the codec is looked at first."""

NO_TIMESTAMP = -1

_LENGTH_AT, _LENGTH_ENDS, _MAGIC_AT, _MAGIC_MAX = 8, 12, 16, 2
_BYTES_MIN = 14
_SHOWN_MAX = 3
_UNLIMITED = 2**63 - 1


class RejectedError(Exception):
    """A batch is not appended; its row shows the start of the log if the log was looked at before."""

    def __init__(
        self,
        error: Error,
        message: str | None = None,
        record_errors: tuple[BatchIndexAndErrorMessage, ...] = (),
        *,
        shows_log_start: bool = True,
    ) -> None:
        super().__init__(error.name)
        self.error = error
        self.message = message
        self.record_errors = record_errors
        self.shows_log_start = shows_log_start


def complete_batches(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the batches of a partition; bytes after the last complete one are ignored (`ByteBufferLogInputStream`).

    Raises RejectedError, with Kafka's message, for a length or magic that no batch has.
    """
    at = 0
    while len(data) - at > _MAGIC_AT:
        (size,) = struct.unpack_from(">i", data, at + _LENGTH_AT)
        (magic,) = struct.unpack_from(">b", data, at + _MAGIC_AT)
        problem = None
        if size < _BYTES_MIN:
            problem = f"Record size {size} is less than the minimum record overhead ({_BYTES_MIN})"
        elif not 0 <= magic <= _MAGIC_MAX:
            problem = f"Invalid magic found in record: {magic}"
        if problem is not None:
            raise RejectedError(Error.CORRUPT_MESSAGE, problem, shows_log_start=False)
        batch = data[at : at + _LENGTH_ENDS + size]
        if len(batch) < _LENGTH_ENDS + size:
            return
        try:
            yield read_header(batch), batch
        except Malformed as error:
            raise RejectedError(Error.CORRUPT_MESSAGE, shows_log_start=False) from error
        at += len(batch)


def check_first_batches(cluster: ClusterState, version: int, request: ProduceRequest) -> None:
    """Raise RejectedError if the first batch of any partition fails the whole request (`RequestUtils.flag`).

    An unknown codec of a batch does so in a partition that exists, after the lengths of all batches.
    """
    unknown = [
        (topic.name, data.index)
        for topic in request.topic_data
        for data in topic.partition_data
        for header, _ in islice(complete_batches(data.records or b""), 1)
        if MAGIC_2_SINCE <= version < ZSTD_SINCE and header.magic == _MAGIC_MAX and not header.has_codec(*Codec)
    ]
    if any(cluster.topics.log(name, index) is not None for name, index in unknown):
        raise RejectedError(Error.UNKNOWN_SERVER_ERROR, shows_log_start=False)


def has_first_batches(version: int, request: ProduceRequest) -> bool:
    """Return whether a broker of 2.4 can parse a Produce: from v3 on each partition begins with a complete batch."""
    try:
        return version < MAGIC_2_SINCE or all(
            any(True for _ in complete_batches(data.records or b""))
            for topic in request.topic_data
            for data in topic.partition_data
        )
    except RejectedError:
        return False


def check_size_and_crc(cluster: ClusterState, topic: TopicState, header: BatchHeader, batch: bytes) -> None:
    """Raise RejectedError if a batch or message is too large or damaged (`UnifiedLog.analyzeAndValidateRecords`)."""
    if header.size > topic.batch_bytes_max(cluster.settings):
        raise RejectedError(Error.MESSAGE_TOO_LARGE, shows_log_start=False)
    if not check_crc(batch):
        raise RejectedError(Error.CORRUPT_MESSAGE, shows_log_start=False)


def check_batch(
    cluster: ClusterState, now: int, topic: TopicState, partition: int, header: BatchHeader, batch: bytes
) -> bytes:
    """Return the batch as it is to be stored. Raises RejectedError."""
    if header.base_offset:
        raise RejectedError(Error.INVALID_RECORD)
    check_size_and_crc(cluster, topic, header, batch)
    is_consistent = 0 < header.record_count == header.last_offset_delta + 1
    if not is_consistent or header.is_control or header.base_sequence < 0 <= header.producer_id:
        raise RejectedError(Error.INVALID_RECORD)
    try:
        records = read_records(batch, LOOKUP_BYTES_MAX if header.record_count <= LOOKUP_RECORDS_MAX else 0)
    except (MissingCodec, Oversized) as error:
        if not topic.is_compacted:
            return batch
        # compaction would fail to read it
        if isinstance(error, MissingCodec):
            raise RejectedError(Error.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
        raise RejectedError(Error.INVALID_RECORD) from error
    except Undecodable as error:
        raise RejectedError(Error.UNKNOWN_SERVER_ERROR) from error
    except Malformed as error:
        fails = isinstance(error, Overlong) and dialect_of(cluster.settings).fails_at_overlong_records
        is_failure = fails and header.codec is Codec.NONE
        raise RejectedError(Error.UNKNOWN_SERVER_ERROR if is_failure else Error.INVALID_RECORD) from error
    if header.codec is not Codec.NONE and any(record.offset != index for index, record in enumerate(records)):
        if dialect_of(cluster.settings).demands_incremental_offsets:
            raise RejectedError(Error.INVALID_RECORD)
        # it would have to be compressed again, and Kafka has skipped its keys and values
        raise RejectedError(Error.UNKNOWN_SERVER_ERROR)
    _check_records(cluster, now, topic, partition, header, records)
    return _stored(now, topic, header, batch, records)


def _check_records(
    cluster: ClusterState, now: int, topic: TopicState, partition: int, header: BatchHeader, records: Sequence[Record]
) -> None:
    """Raise RejectedError that names each invalid record (KIP-467)."""
    dialect = dialect_of(cluster.settings)
    # releases before 4.0 have one limit for both
    either = topic.config("message.timestamp.difference.max.ms")
    earliest = now - int(topic.config("message.timestamp.before.max.ms") or either or _UNLIMITED)
    latest = now + int(topic.config("message.timestamp.after.max.ms") or either or dialect.timestamp_after_max_ms)
    error, errors = Error.INVALID_RECORD, []
    for index, record in enumerate(records):
        is_create_time = not topic.has_append_time and record.timestamp != NO_TIMESTAMP
        if topic.is_compacted and record.key is None:
            place = f"{topic.name}-{partition}{'' if dialect.explains_record_errors else '.'}"
            problem = f"Compacted topic cannot accept message without key in topic partition {place}"
        elif is_create_time and not earliest <= record.timestamp <= latest:
            error = Error.INVALID_TIMESTAMP
            problem = (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
                f"The timestamp should be within [{earliest}, {as_long(latest)}]"
            )
        elif header.is_append_time and not (is_create_time and dialect.producers_may_set_append_time):
            error = Error.INVALID_TIMESTAMP
            problem = (
                f"Invalid timestamp type in message {_shown(header, record)}. "
                "Producer should not set timestamp type to LogAppendTime."
            )
        else:
            continue
        errors.append(BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=problem))
    if not errors:
        return
    if error is Error.INVALID_TIMESTAMP:
        reason = "One or more records have been rejected due to invalid timestamp"
    elif not dialect.explains_record_errors:
        reason = "One or more records have been rejected"
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={each.batch_index}, message='{each.batch_index_error_message}')"
            for each in errors[:_SHOWN_MAX]
        )
        reason = (
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    raise RejectedError(error, reason, tuple(errors))


def _shown(header: BatchHeader, record: Record) -> str:
    key, value = (len(part or b"") for part in (record.key, record.value))
    kind = "DefaultRecord" if header.codec is Codec.NONE else "PartialDefaultRecord"
    return f"{kind}(offset={record.offset}, timestamp={record.timestamp}, key={key} bytes, value={value} bytes)"


def _stored(now: int, topic: TopicState, header: BatchHeader, batch: bytes, records: Sequence[Record]) -> bytes:
    is_append_time = topic.has_append_time
    max_timestamp = now if is_append_time else max(NO_TIMESTAMP, *(record.timestamp for record in records))
    if (max_timestamp, is_append_time) == (header.max_timestamp, header.is_append_time):
        return batch
    return with_timestamp(batch, max_timestamp, is_append_time=is_append_time)
