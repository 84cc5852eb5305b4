"""Batches with other bytes in some place, and the right checksum."""

from __future__ import annotations

import struct

from koordinator.wire.records import crc32c

BASE_OFFSET, LENGTH, MAGIC, ATTRIBUTES, LAST_DELTA, BASE_TIMESTAMP = 0, 8, 16, 21, 23, 27
MAX_TIMESTAMP, PRODUCER_ID, SEQUENCE, COUNT, HEADER_ENDS = 35, 43, 53, 57, 61


def patched(batch: bytes, at: int, form: str, number: int) -> bytes:
    """Return a batch with another number at a position."""
    data = bytearray(batch)
    struct.pack_into(form, data, at, number)
    return summed(bytes(data))


def summed(batch: bytes) -> bytes:
    """Return a batch with the right checksum."""
    return batch[:17] + struct.pack(">I", crc32c(batch[ATTRIBUTES:])) + batch[ATTRIBUTES:]


def with_body(body: bytes, batch: bytes) -> bytes:
    """Return a batch with other bytes as its records."""
    length = struct.pack(">i", HEADER_ENDS - 12 + len(body))
    return summed(batch[:LENGTH] + length + batch[12:HEADER_ENDS] + body)
