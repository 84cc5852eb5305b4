"""Message sets of magic 0 and 1, into which brokers convert batches for Fetch v0-3 (`AbstractLegacyRecordBatch`).

`wire.records` reads them.
"""

import struct
import zlib
from collections.abc import Sequence

from .compression import Codec, compress
from .records import APPEND_TIME, Record

_BATCH_OVERHEAD = 61
"""The smallest length that a batch of magic 2 may have."""


def write_message_set(
    records: Sequence[Record], magic: int, codec: Codec = Codec.NONE, *, is_append_time: bool = False
) -> bytes:
    """Return records with their own offsets, compressed ones in one message. Headers are left out."""
    attributes = APPEND_TIME if is_append_time and magic else 0
    if codec is Codec.NONE:
        return b"".join(
            _message(each.offset, magic, attributes, each.timestamp, each.key, each.value) for each in records
        )
    # from magic 1 on offsets inside count from the first
    base = records[0].offset if magic else 0
    inside = b"".join(
        _message(each.offset - base, magic, attributes, each.timestamp, each.key, each.value) for each in records
    )
    newest = max(each.timestamp for each in records)
    return _message(records[-1].offset, magic, attributes | codec, newest, None, compress(codec, inside, magic))


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    time = struct.pack(">q", timestamp) if magic else b""
    body = b"".join((struct.pack(">bb", magic, attributes), time, *_sized(key), *_sized(value)))
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _sized(content: bytes | None) -> tuple[bytes, bytes]:
    return struct.pack(">i", -1 if content is None else len(content)), content or b""


def write_overflow(size: int) -> bytes:
    """Return the beginning of a batch that is longer than `size`: consumers ignore it (`buildOverflowBatch`)."""
    return struct.pack(">qi", -1, max(size + 1, _BATCH_OVERHEAD)).ljust(size, b"\0")[:size]
