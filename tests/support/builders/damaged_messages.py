"""Messages of magic 0 and 1, and compressed ones (wrappers) with one thing wrong, and the right checksum."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from builders.damaged_batches import LENGTH, MAGIC
from builders.record_batches import MIB
from koordinator.wire.compression import Codec, compress, decompress
from koordinator.wire.records import read_header

if TYPE_CHECKING:
    from collections.abc import Callable

CRC, ATTRIBUTES, TIMESTAMP = 12, 17, 18
APPEND_TIME = 0x08


def message(magic: int, value: bytes | None, *, offset: int = 0, attributes: int = 0, timestamp: int = 9) -> bytes:
    """Return a message of magic 0 or 1 with a null key."""
    body = struct.pack(">bb", magic, attributes)
    body += struct.pack(">q", timestamp) if magic else b""
    body += struct.pack(">i", -1)
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def summed(message: bytes) -> bytes:
    """Return a message with the right checksum."""
    return message[:CRC] + struct.pack(">I", zlib.crc32(message[MAGIC:])) + message[MAGIC:]


def _wrapped(wrapper: bytes, value: bytes | None) -> bytes:
    """Return a wrapper with another value."""
    header = read_header(wrapper)
    return message(
        header.magic,
        value,
        offset=header.base_offset,
        attributes=header.attributes,
        timestamp=header.max_timestamp,
    )


def _value(wrapper: bytes) -> bytes:
    return wrapper[len(message(read_header(wrapper).magic, b"")) :]


def _with_value(change: Callable[[bytes], bytes | None]) -> Callable[[bytes], bytes]:
    return lambda wrapper: _wrapped(wrapper, change(_value(wrapper)))


def _with_messages(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def damaged(wrapper: bytes) -> bytes:
        header = read_header(wrapper)
        inside = decompress(header.codec, _value(wrapper), MIB, header.magic)
        return _wrapped(wrapper, compress(header.codec, change(inside), header.magic))

    return damaged


def _first(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Change the first message inside."""

    def damaged(messages: bytes) -> bytes:
        end = read_header(messages).size
        return change(messages[:end]) + messages[end:]

    return _with_messages(damaged)


def _put(at: int, form: str, number: int) -> Callable[[bytes], bytes]:
    def changed(message: bytes) -> bytes:
        data = bytearray(message)
        struct.pack_into(form, data, at, number)
        return summed(bytes(data))

    return changed


def _lengthened(message: bytes) -> bytes:
    """Return a message whose value claims one byte more than there are."""
    header = read_header(message)
    at = TIMESTAMP + (8 if header.magic else 0)
    (key_size,) = struct.unpack_from(">i", message, at)
    at += 4 + max(0, key_size)
    (size,) = struct.unpack_from(">i", message, at)
    return _put(at, ">i", max(0, size) + 1)(message)


WRAPPER_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "null value": _with_value(lambda _: None),
    "cut frame": _with_value(lambda value: value[:-3]),
    "not compressed": _with_value(lambda _: b"xxxxxxxxxxxxxxxxxxxxxxxx"),
    "frame of no bytes": _with_value(lambda _: b""),
    "no messages": _with_messages(lambda _: b""),
    "last message cut": _with_messages(lambda messages: messages[:-1]),
    "bytes after messages": _with_messages(lambda messages: messages + b"zz"),
    "crc of a message": _first(lambda each: each[:-1] + b"~"),
    "magic of a message": _first(lambda each: each[:MAGIC] + bytes([each[MAGIC] ^ 1]) + each[MAGIC + 1 :]),
    "magic 9 of a message": _first(_put(MAGIC, ">b", 9)),
    "size 5 of a message": _first(lambda each: each[:LENGTH] + struct.pack(">i", 5) + each[LENGTH + 4 :]),
    "codec of a message": _first(_put(ATTRIBUTES, ">b", Codec.GZIP)),
    "value of a message": _first(_lengthened),
    "offset of a message": _first(_put(0, ">q", 7)),
    "codec 4": _put(ATTRIBUTES, ">b", Codec.ZSTD),
    "codec 5": _put(ATTRIBUTES, ">b", 5),
    "offset -1": _put(0, ">q", -1),
    "offset 3": _put(0, ">q", 3),
    "append time": lambda wrapper: _put(ATTRIBUTES, ">b", wrapper[ATTRIBUTES] | APPEND_TIME)(wrapper),
}
"""What may be wrong with a compressed message; the wrapper has a null key."""
