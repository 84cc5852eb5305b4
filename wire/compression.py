"""The compression codecs of record batches, with a limit on decompressed bytes.

gzip comes from Python; snappy, lz4 and zstd from cramjam, which is imported when a batch needs it. A few bytes may
expand to gigabytes, so decompression always has a limit, and every length inside the data is checked against it.
"""

import struct
import zlib
from enum import IntEnum
from types import ModuleType
from typing import assert_never

from .primitives import Malformed


class Codec(IntEnum):
    """The lowest three bits of a batch's attributes; the names, in lower case, are those of compression.type."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class MissingCodec(ImportError):
    """The library of a batch's codec is not installed."""


class Oversized(Malformed):
    """Compressed data expands to more bytes than the caller allows."""


GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
GZIP = zlib.MAX_WBITS | 16

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""The header of snappy data of Java producers: blocks, each after its int32 length."""
XERIAL_BLOCK = 32 * 1024

LZ4_HEADER = bytes.fromhex("04224d18604082")
"""The header of an lz4 frame of independent blocks of at most 64 KiB, the only kind that Java reads (KIP-57)."""
LZ4_HEADER_OF_MAGIC_0 = bytes.fromhex("04224d1860401a")
"""The same header in a message of magic 0: its checksum wrongly starts at the frame's first byte (KAFKA-3160)."""
LZ4_BLOCK = 64 * 1024

LZ4_DESCRIPTOR_AT = 4
LZ4_CONTENT_SIZE = 0x08
"""The flag of a frame whose descriptor has eight bytes more."""

SNAPPY_GROWTH_MAX = 64
"""An upper bound on the expansion of snappy: a copy takes three bytes and yields at most 64."""

BUFFER_BYTES_MIN = 64 * 1024
"""The first buffer for lz4 and zstd, whose frames may omit the decompressed size."""


def compress(codec: Codec, data: bytes, magic: int = 2) -> bytes:
    """Return the compressed data, framed as by Java producers in a batch or message of this magic."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            # unlike gzip.compress, without a timestamp in the header: equal input, equal bytes
            packer = zlib.compressobj(wbits=GZIP)
            return packer.compress(data) + packer.flush()
        case Codec.SNAPPY:
            parts = [XERIAL_HEADER]
            for start in range(0, len(data), XERIAL_BLOCK):
                block = bytes(_cramjam(codec).snappy.compress_raw(data[start : start + XERIAL_BLOCK]))
                parts += (struct.pack(">i", len(block)), block)
            return b"".join(parts)
        case Codec.LZ4:
            parts = [LZ4_HEADER if magic else LZ4_HEADER_OF_MAGIC_0]
            for start in range(0, len(data), LZ4_BLOCK):
                plain = data[start : start + LZ4_BLOCK]
                block = bytes(_cramjam(codec).lz4.compress_block(plain, store_size=False))
                # the highest bit marks a block that is not compressed
                size, block = (len(block), block) if len(block) < len(plain) else (len(plain) | 1 << 31, plain)
                parts += (struct.pack("<I", size), block)
            return b"".join((*parts, struct.pack("<I", 0)))
        case Codec.ZSTD:
            return bytes(_cramjam(codec).zstd.compress(data))
        case _:
            assert_never(codec)


def decompress(codec: Codec, data: bytes, limit: int, magic: int = 2) -> bytes:
    """Return the decompressed data. Raises Malformed for damaged data, Oversized for more than `limit` bytes.

    In magic 0 no lz4 frame is refused for the checksum of its header (`Lz4BlockInputStream`).
    """
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return _gunzip(data, limit)
        case Codec.SNAPPY if data.startswith(XERIAL_MAGIC):
            return _unsnappy_blocks(data, limit)
        case Codec.SNAPPY:
            return _unsnappy(data, limit)
        case Codec.ZSTD if not data:
            # no frame at all
            return b""
        case Codec.LZ4 if not magic:
            return _decompress_into_buffer(codec, _with_header_checksum(data), limit)
        case Codec.LZ4 | Codec.ZSTD:
            return _decompress_into_buffer(codec, data, limit)
        case _:
            assert_never(codec)


def _gunzip(data: bytes, limit: int) -> bytes:
    parts = []
    room = limit
    while data:
        unpacker = zlib.decompressobj(wbits=GZIP_OR_ZLIB)
        try:
            # one more byte distinguishes a full buffer from an overflow
            part = unpacker.decompress(data, room + 1)
        except zlib.error as error:
            raise Malformed(f"not gzip: {error}") from error
        if len(part) > room:
            raise _too_much(limit)
        if not unpacker.eof:
            raise Malformed("gzip data ends early")
        parts.append(part)
        room -= len(part)
        data = unpacker.unused_data
    if not parts:
        raise Malformed("no gzip data at all")
    return b"".join(parts)


def _unsnappy_blocks(data: bytes, limit: int) -> bytes:
    parts = []
    room = limit
    at = len(XERIAL_HEADER)
    if len(data) < at:
        raise Malformed("snappy data ends inside its header")
    # bytes that are no length of a block are ignored (`SnappyInputStream`)
    while len(data) - at >= struct.calcsize(">i"):
        (size,) = struct.unpack_from(">i", data, at)
        at += struct.calcsize(">i")
        if not 0 <= size <= len(data) - at:
            raise Malformed(f"a snappy block of {size} bytes where {len(data) - at} are left")
        part = _unsnappy(data[at : at + size], room)
        parts.append(part)
        room -= len(part)
        at += size
    return b"".join(parts)


def _unsnappy(data: bytes, limit: int) -> bytes:
    snappy = _cramjam(Codec.SNAPPY).snappy
    try:
        size = snappy.decompress_raw_len(data)
        if size > SNAPPY_GROWTH_MAX * len(data):
            raise Malformed(f"{len(data)} bytes of snappy cannot be {size}")
        if size > limit:
            raise _too_much(limit)
        return bytes(snappy.decompress_raw(data))
    except _cramjam(Codec.SNAPPY).DecompressionError as error:
        raise Malformed(f"not snappy: {error}") from error


def _with_header_checksum(frame: bytes) -> bytes:
    """Return an lz4 frame with the checksum that its header should have: the second byte of the descriptor's XXH32."""
    if len(frame) <= LZ4_DESCRIPTOR_AT:
        return frame
    end = LZ4_DESCRIPTOR_AT + (10 if frame[LZ4_DESCRIPTOR_AT] & LZ4_CONTENT_SIZE else 2)
    checksum = _short_xxh32(frame[LZ4_DESCRIPTOR_AT:end]) >> 8 & 0xFF
    return frame[:end] + bytes([checksum]) + frame[end + 1 :]


def _short_xxh32(data: bytes) -> int:
    """Return the XXH32 of less than 16 bytes, with seed 0: too little, and for too old clients, to need a library."""
    value = 0x165667B1 + len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + word * 0xC2B2AE3D, 17) * 0x27D4EB2F
    for byte in data[whole:]:
        value = _rotated(value + byte * 0x165667B1, 11) * 0x9E3779B1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return value << bits | value >> 32 - bits


def _decompress_into_buffer(codec: Codec, data: bytes, limit: int) -> bytes:
    cramjam = _cramjam(codec)
    library = cramjam.lz4 if codec is Codec.LZ4 else cramjam.zstd
    room = min(limit, max(BUFFER_BYTES_MIN, 4 * len(data)))
    while True:
        buffer = bytearray(room)
        try:
            size = library.decompress_into(data, buffer)
        except cramjam.DecompressionError as error:
            # the only sign of a buffer that is too small
            if "write whole buffer" not in str(error):
                raise Malformed(f"not {codec.name.lower()}: {error}") from error
        else:
            return bytes(memoryview(buffer)[:size])
        if room >= limit:
            raise _too_much(limit)
        room = min(limit, 4 * room)


def _too_much(limit: int) -> Oversized:
    return Oversized(f"compressed data expands to more than {limit} bytes")


def _cramjam(codec: Codec) -> ModuleType:
    try:
        import cramjam  # noqa: PLC0415 - most batches do without
    except ImportError as error:
        raise MissingCodec(f"{codec.name.lower()} needs cramjam, which is missing: pip install cramjam") from error
    return cramjam
