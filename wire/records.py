"""Record batches, the content of Produce, Fetch and the log.

A *batch* of magic 2 is a header of 61 bytes and the records, compressed as a whole. Old message sets (magic 0 and 1)
have the magic byte at the same place, so the same walk reads them: each message is one "batch", and a compressed
message (a *wrapper*) has a message set as its value.

The broker stores batches unchanged except for the base offset and leader epoch, which the checksum does not cover.
Invalid bytes always raise Malformed; every count and length from a peer is checked against the remaining bytes.

Rules: DefaultRecordBatch, DefaultRecord and AbstractLegacyRecordBatch of Apache Kafka.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

from .compression import Codec, Oversized, compress, decompress
from .primitives import Malformed
from .values import value
from .varints import VARLONG_BYTES, sized, varbytes, varint, zigzag

LIMIT = 100 * 1024 * 1024
"""The default limit on the decompressed bytes of a batch: 100 MiB."""

_PREFIX = struct.Struct(">qiibI")  # not covered by the checksum
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LEGACY = struct.Struct(">qiIbb")
_LENGTH = struct.Struct(">i")
_LONG = struct.Struct(">q")

_BEFORE_LENGTH_ENDS = 12  # base offset and batch length, not part of the length
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22  # the lower byte
_LEGACY_CRC_ENDS = 16
_LEGACY_BYTES_MIN = {0: 14, 1: 22}  # after the length: crc, magic, attributes, timestamp, two null lengths
_MAGIC = 2

_CODEC = 0x07
APPEND_TIME = 0x08
"""The attribute of batches and messages that have the time of the log."""
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40


class Undecodable(Malformed):
    """The records of a batch cannot be decompressed, or the key and value of a message of magic 0 or 1 not be found."""


class InvalidWrapper(Malformed):
    """A compressed message of magic 0 or 1 does not hold what it should; its bytes are not damaged."""


class Overlong(Malformed):
    """A record ends beyond its batch, and is not the last one, or nothing of it is there."""


@value
class Record:
    """A record; timestamp in ms, -1 for none; key, value, and the values of headers may be null."""

    offset: int = -1
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@value
class BatchHeader:
    """The header of a batch, in the order of its fields.

    For a message of magic 0 or 1 missing fields are -1, base and max timestamp are its own, and record_count is 1, even
    for a wrapper, whose content is not read (its base_offset is the offset of its *last* message).
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> Codec:
        """The compression of the records. Raises Undecodable for an unknown codec."""
        try:
            return Codec(self.attributes & _CODEC)
        except ValueError as error:
            raise Undecodable(f"unknown codec {self.attributes & _CODEC}") from error

    def has_codec(self, *codecs: Codec) -> bool:
        """Return whether the records have one of these compressions; an unknown one is none of them."""
        return self.attributes & _CODEC in codecs

    @property
    def is_append_time(self) -> bool:
        """Whether the timestamps are the log's append time (max_timestamp for every record), not the producer's."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.magic == _MAGIC and bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a transaction marker instead of a client's records."""
        return self.magic == _MAGIC and bool(self.attributes & _CONTROL)

    @property
    def size(self) -> int:
        """The size of the batch in bytes, with its header."""
        return _BEFORE_LENGTH_ENDS + self.batch_length

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta


def read_batches(data: bytes | memoryview) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield each batch with its header and bytes. Raises Malformed at an invalid batch.

    Checks lengths and magic, but neither the checksum (check_crc) nor the records (read_records).
    """
    at = 0
    while at < len(data):
        header = _header(data, at)
        if header.size > len(data) - at:
            raise Malformed(f"a batch of {header.size} bytes, {len(data) - at} bytes left")
        yield header, bytes(data[at : at + header.size])
        at += header.size


def whole_batches(data: bytes | memoryview) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the batches of a fetched partition, whose end may be cut off (KIP-74). Raises Malformed if the first is."""
    is_first = True
    try:
        for each in read_batches(data):
            yield each
            is_first = False
    except Malformed:
        if is_first:
            raise


def read_header(batch: bytes | memoryview) -> BatchHeader:
    """Return the header of the first batch. Raises Malformed for truncated data and unknown magic."""
    return _header(batch, 0)


def is_transactional(batch: bytes | memoryview) -> bool:
    """Return whether this is a transactional batch of magic 2, without reading the rest of its header."""
    return len(batch) >= _HEADER.size and batch[_MAGIC_AT] == _MAGIC and bool(batch[_ATTRIBUTES_AT] & _TRANSACTIONAL)


def crc32c(data: bytes | memoryview, value: int = 0) -> int:
    """Return the CRC-32C of data that follows bytes with the checksum `value`."""
    return _crc32c()(data, value)


@cache
def _crc32c() -> Callable[[bytes | memoryview, int], int]:
    """Import the extension of the package `crc32c` alone: its command line and version take 50 times as long."""
    package = find_spec("crc32c")
    extension = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations or ())
    if extension is None or extension.loader is None:
        from crc32c import crc32c  # noqa: PLC0415 - a release with another layout

        return crc32c
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    function: Callable[[bytes | memoryview, int], int] = module.crc32c
    return function


def check_crc(batch: bytes | memoryview) -> bool:
    """Return whether the checksum of the batch is correct (CRC-32C; magic 0 and 1: CRC-32)."""
    header = read_header(batch)
    if header.magic == _MAGIC:
        return crc32c(batch[_PREFIX.size : header.size]) == header.crc
    return zlib.crc32(batch[_LEGACY_CRC_ENDS : header.size]) == header.crc


def read_records(batch: bytes | memoryview, limit: int = LIMIT) -> list[Record]:
    """Return the records of a batch, with their absolute offsets and timestamps.

    `limit` bounds the decompressed bytes. Raises Malformed for damaged or truncated data, Oversized above the limit,
    Undecodable for data that its codec cannot read and for a message of magic 0 or 1 without a whole key and value,
    InvalidWrapper for a compressed one with wrong contents, and MissingCodec if the codec's library is not installed.
    """
    header = read_header(batch)
    if header.size > len(batch):
        raise Malformed(f"a batch of {header.size} bytes, {len(batch)} bytes left")
    data = bytes(batch[: header.size])
    if header.magic == _MAGIC:
        return _records(header, data, limit)
    return _messages(header, data, limit)


def write_batch(  # noqa: PLR0913 - the fields of a batch
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Return a batch of magic 2. Raises ValueError without records.

    The records get consecutive offsets from base_offset on; their own offsets are ignored. `compression` is a name of
    compression.type (gzip, snappy, lz4, zstd), or None.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    codec = Codec[compression.upper()] if compression else Codec.NONE
    base_timestamp = records[0].timestamp
    body = b"".join(_record(i, r.timestamp - base_timestamp, r) for i, r in enumerate(records))
    body = compress(codec, body)
    attributes = codec | (_TRANSACTIONAL if is_transactional else 0) | (_CONTROL if is_control else 0)
    header = [
        base_offset,
        _HEADER.size - _BEFORE_LENGTH_ENDS + len(body),
        partition_leader_epoch,
        _MAGIC,
        0,
        attributes,
        len(records) - 1,
        base_timestamp,
        max(r.timestamp for r in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    ]
    return _with_crc(header, body)


def rebase(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batch (magic 2) with another base offset and leader epoch, which the checksum does not cover."""
    return b"".join((_LONG.pack(base_offset), batch[8:12], _LENGTH.pack(leader_epoch), batch[_MAGIC_AT:]))


def with_records(batch: bytes, records: Sequence[Record]) -> bytes:
    """Return the batch (magic 2) with only these of its records, or with none (`MemoryRecords.filterTo`).

    Offsets, compression and producer stay, but a transactional batch becomes an ordinary one, and an empty one has no
    compression and no timestamp.
    """
    old = read_header(batch)
    deltas = ((record.offset - old.base_offset, record.timestamp - old.base_timestamp, record) for record in records)
    codec = old.codec if records else Codec.NONE
    body = compress(codec, b"".join(_record(*each) for each in deltas))
    header = [
        old.base_offset,
        _HEADER.size - _BEFORE_LENGTH_ENDS + len(body),
        old.partition_leader_epoch,
        _MAGIC,
        0,
        old.attributes & ~_TRANSACTIONAL & ~_CODEC | codec,
        old.last_offset_delta,
        old.base_timestamp,
        max((record.timestamp for record in records), default=-1),
        *((-1, -1, -1) if old.is_transactional else (old.producer_id, old.producer_epoch, old.base_sequence)),
        len(records),
    ]
    return _with_crc(header, body)


def with_timestamp(batch: bytes, max_timestamp: int, *, is_append_time: bool) -> bytes:
    """Return the batch (magic 2) with another greatest timestamp; `is_append_time`: for each record.

    Unknown attributes are gone (`DefaultRecordBatch.setMaxTimestamp`).
    """
    header = _HEADER.unpack_from(batch)
    known = _CODEC | _TRANSACTIONAL | _CONTROL | _DELETE_HORIZON
    attributes = header[5] & known | (APPEND_TIME if is_append_time else 0)
    return _with_crc((*header[:5], attributes, *header[6:8], max_timestamp, *header[9:]), batch[_HEADER.size :])


def _with_crc(header: Sequence[int], body: bytes) -> bytes:
    """Return the batch with these fields in its header, but for the checksum."""
    crc = crc32c(body, crc32c(_HEADER.pack(*header)[_PREFIX.size :]))
    return _HEADER.pack(*header[:4], crc, *header[5:]) + body


def _header(data: bytes | memoryview, at: int) -> BatchHeader:
    left = len(data) - at
    if left <= _MAGIC_AT:
        raise Malformed(f"{left} bytes are too few for a batch")
    magic = data[at + _MAGIC_AT]
    if magic == _MAGIC:
        if left < _HEADER.size:
            raise Malformed(f"{left} bytes are too few for the header of a batch")
        header = BatchHeader(*_HEADER.unpack_from(data, at))
        if header.size < _HEADER.size:
            raise Malformed(f"a batch of {header.batch_length} bytes")
        return header
    if magic not in _LEGACY_BYTES_MIN:
        raise Malformed(f"unknown magic {magic}")
    least = _LEGACY_BYTES_MIN[magic]
    if left < _BEFORE_LENGTH_ENDS + least:
        raise Malformed(f"{left} bytes are too few for a message")
    offset, length, crc, _, attributes = _LEGACY.unpack_from(data, at)
    if length < least:
        raise Malformed(f"a message of {length} bytes")
    timestamp = _LONG.unpack_from(data, at + _LEGACY.size)[0] if magic else -1
    return BatchHeader(offset, length, -1, magic, crc, attributes, 0, timestamp, timestamp, -1, -1, -1, 1)


def _records(header: BatchHeader, batch: bytes, limit: int) -> list[Record]:
    if header.record_count < 0:
        raise Malformed(f"{header.record_count} records")
    data = _decompressed(header, batch[_HEADER.size :], limit)
    records: list[Record] = []
    at = 0
    try:
        for _ in range(header.record_count):
            at = _read_record(header, data, at, records)
    except IndexError as error:
        raise Malformed(f"the batch ends inside record {len(records)} of {header.record_count}") from error
    if at != len(data):
        raise Malformed(f"{len(data) - at} bytes after the last record")
    return records


def _read_record(header: BatchHeader, data: bytes, at: int, into: list[Record]) -> int:
    """Append the record at a position to a list, and return the position after it."""
    size, at = varint(data, at)
    end = at + size
    if not at < end <= len(data):
        is_overlong = end > len(data) and (len(into) + 1 < header.record_count or at == len(data))
        raise (Overlong if is_overlong else Malformed)(f"a record of {size} bytes, {len(data) - at} bytes left")
    at += 1  # attributes, which are unused
    timestamp_delta, at = varint(data, at, VARLONG_BYTES)
    offset_delta, at = varint(data, at)
    key, at = varbytes(data, at)
    value, at = varbytes(data, at)
    count, at = varint(data, at)
    if count < 0:
        raise Malformed(f"{count} headers")
    headers = []
    for _ in range(count):
        name, at = varbytes(data, at)
        if name is None:
            raise Malformed("a header without a name")
        content, at = varbytes(data, at)
        # Java accepts invalid UTF-8, too
        headers.append((name.decode(errors="replace"), content))
    if at != end:
        raise Malformed(f"a record of {size} bytes has {at - end + size} bytes of fields")
    timestamp = header.max_timestamp if header.is_append_time else header.base_timestamp + timestamp_delta
    into.append(Record(_int64(header.base_offset + offset_delta), _int64(timestamp), key, value, tuple(headers)))
    return at


def _messages(header: BatchHeader, message: bytes, limit: int) -> list[Record]:
    key, value = _key_and_value(header.magic, message)
    if header.codec is Codec.NONE:
        return [Record(header.base_offset, header.max_timestamp, key, value)]
    if value is None:
        raise InvalidWrapper("a compressed message without a value")
    if header.codec is Codec.ZSTD:
        raise InvalidWrapper("zstd came after the messages of magic 0 and 1")
    inside: list[Record] = []
    for inner, data in _messages_inside(header, _decompressed(header, value, limit)):
        if inner.codec is not Codec.NONE:
            raise InvalidWrapper("a compressed message inside of another one")
        if not check_crc(data):
            raise Malformed(f"wrong checksum of message {len(inside)} of a wrapper")
        timestamp = header.max_timestamp if header.is_append_time else inner.max_timestamp
        inside.append(Record(inner.base_offset, timestamp, *_key_and_value(inner.magic, data)))
    if not inside:
        raise InvalidWrapper("a wrapper without messages")
    if header.magic == 0:
        return inside
    # from magic 1 on inner offsets count from 0, and the wrapper has the offset of its last message;
    # a producer leaves the offset of the wrapper at 0
    base = header.base_offset - inside[-1].offset if header.base_offset else 0
    if base < 0:
        raise InvalidWrapper(f"a wrapper of offset {header.base_offset}, its last message has {inside[-1].offset}")
    return [replace(r, offset=_int64(base + r.offset)) for r in inside]


def _messages_inside(header: BatchHeader, data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the messages of a wrapper; one at the end that is cut off is none (`DataLogInputStream`)."""
    at = 0
    while len(data) - at >= _BEFORE_LENGTH_ENDS:
        (size,) = _LENGTH.unpack_from(data, at + _LONG.size)
        end = at + _BEFORE_LENGTH_ENDS + size
        if size < _LEGACY_BYTES_MIN[0]:
            raise Malformed(f"a message of {size} bytes in a wrapper")
        if end > len(data):
            return
        magic = data[at + _MAGIC_AT]
        if magic != header.magic:
            # Kafka fails if it cannot show the message in its refusal
            _key_and_value(magic, data[at:end])
            raise InvalidWrapper(f"magic {magic} in a wrapper of magic {header.magic}")
        if size < _LEGACY_BYTES_MIN[magic]:
            raise Undecodable(f"a message of {size} bytes in a wrapper")
        yield _header(data, at), data[at:end]
        at = end


def _decompressed(header: BatchHeader, data: bytes, limit: int) -> bytes:
    try:
        return decompress(header.codec, data, limit, header.magic)
    except Oversized:
        raise
    except Malformed as error:
        raise Undecodable(str(error)) from error


def _key_and_value(magic: int, message: bytes) -> tuple[bytes | None, bytes | None]:
    """Return the key and the value; bytes after them are ignored, and each negative size is a null (`LegacyRecord`)."""
    key, at = _bytes(message, _LEGACY.size + (_LONG.size if magic else 0))
    value, _ = _bytes(message, at)
    return key, value


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    if len(data) - at < _LENGTH.size:
        raise Undecodable("a message ends inside a length")
    (size,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if size < 0:
        return None, at
    if size > len(data) - at:
        raise Undecodable(f"{size} bytes, {len(data) - at} bytes left")
    return data[at : at + size], at + size


def _int64(number: int) -> int:
    """Wrap a sum around at 64 bits, as Java does; a peer chooses both summands."""
    return (number + 2**63) % 2**64 - 2**63


def _record(offset_delta: int, timestamp_delta: int, record: Record) -> bytes:
    parts = [b"\0", zigzag(_int64(timestamp_delta)), zigzag(offset_delta)]
    for content in (record.key, record.value):
        parts += sized(content)
    parts.append(zigzag(len(record.headers)))
    for name, content in record.headers:
        parts += sized(name.encode())
        parts += sized(content)
    body = b"".join(parts)
    return zigzag(len(body)) + body
