"""The types every message is made of: functions that read them from and write them to a stream.

A `read_x(io)` takes the value from the front of the stream. Bytes that cannot be one raise Malformed;
where bytes are missing for a number it may as well be IndexError or struct.error, and invalid UTF-8 raises
UnicodeDecodeError: koordinator.wire.codec makes Malformed of all of these. A `write_x(value, io)` raises
whatever Python does for a value that is not of the type; the codec makes ValueError of it.

"Compact" is the encoding of flexible versions (KIP-482): lengths and counts are uvarints, one more than
the number meant, so that 0 is null. Lengths and counts come from the peer: the bytes are read
before anything is allocated for them.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from typing import TypeVar
from uuid import UUID

_T = TypeVar("_T")

ZERO_UUID = UUID(int=0)
"""Stands for "none" wherever an id of a topic or directory may be missing."""

STRING_BYTES_MAX = 0x7FFF
"""The longest text, in bytes of UTF-8: also of a compact string, though its length could say more."""

_COUNTS_UNCHECKED_MAX = 255
_UVARINT_BYTES_MAX = 5
_UVARINT_MAX = 0xFFFFFFFF

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_BYTE = tuple(bytes([value]) for value in range(128))


class Malformed(ValueError):
    """Bytes from a peer that are not what they should be. The connection they came from is closed."""


# Numbers


@lru_cache(maxsize=512)  # bounded, because the counts come from the peer
def numbers(code: str, count: int) -> struct.Struct:
    """The struct of `count` numbers of one format character, big-endian."""
    return struct.Struct(f">{count}{code}")


def read_uvarint(io: BytesIO) -> int:
    """An unsigned number of at most 32 bits, 7 in each byte, the least significant first."""
    value = io.read(1)[0]
    return value if value < 0x80 else _read_uvarint_on(io, value)  # noqa: PLR2004 - the bit for "more"


def _read_uvarint_on(io: BytesIO, first: int) -> int:
    value = first & 0x7F
    for place in range(1, _UVARINT_BYTES_MAX):
        byte = io.read(1)[0]
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            if value > _UVARINT_MAX:
                break
            return value
    raise Malformed("a uvarint has more than 32 bits")


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned number, as read_uvarint reads them."""
    if value < 0x80:  # noqa: PLR2004 - the bit for "more"
        return _BYTE[value]
    data = bytearray()
    while value >= 0x80:  # noqa: PLR2004
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _read(io: BytesIO, length: int) -> bytes:
    """Exactly `length` bytes; a negative length is a null where there must be none."""
    if length < 0:
        raise Malformed("null, or a negative length, where a value must be")
    data = io.read(length)
    if len(data) != length:
        raise Malformed(f"{length} bytes are announced, {len(data)} are there")
    return data


def _read_length16(io: BytesIO) -> int:
    length: int = _INT16.unpack(io.read(2))[0]
    return length


def _read_length32(io: BytesIO) -> int:
    length: int = _INT32.unpack(io.read(4))[0]
    return length


# Strings


def read_string(io: BytesIO) -> str:
    """Text behind an int16 length in bytes."""
    return _read(io, _read_length16(io)).decode()


def read_nullable_string(io: BytesIO) -> str | None:
    """Text behind an int16 length in bytes; the length -1 is None."""
    length = _read_length16(io)
    return None if length == -1 else _read(io, length).decode()


def read_compact_string(io: BytesIO) -> str:
    """Text behind a uvarint, its length in bytes + 1; Malformed if that is more than STRING_BYTES_MAX, as in Kafka."""
    length = read_uvarint(io) - 1
    data = io.read(length)
    if len(data) != length:  # always so of a null, whose length is -1
        raise Malformed("null" if length < 0 else f"{length} bytes are announced, {len(data)} are there")
    if length > STRING_BYTES_MAX:
        raise _too_long(length)
    return data.decode()


def read_nullable_compact_string(io: BytesIO) -> str | None:
    """Text behind a uvarint, its length in bytes + 1; 0 is None. As long as in read_compact_string."""
    length = read_uvarint(io)
    if length > STRING_BYTES_MAX + 1:
        raise _too_long(length - 1)
    return _read(io, length - 1).decode() if length else None


def _too_long(length: int) -> Malformed:
    return Malformed(f"a text of {length} bytes is announced, {STRING_BYTES_MAX} are allowed")


def write_string(value: str, io: BytesIO) -> None:
    """Text behind an int16 length in bytes; struct.error if it is longer than 32767."""
    data = value.encode()
    io.write(_INT16.pack(len(data)) + data)


def write_nullable_string(value: str | None, io: BytesIO) -> None:
    """Text behind an int16 length in bytes, -1 for None."""
    if value is None:
        io.write(b"\xff\xff")
    else:
        write_string(value, io)


def write_compact_string(value: str, io: BytesIO) -> None:
    """Text behind a uvarint, its length in bytes + 1; ValueError if it is longer than STRING_BYTES_MAX."""
    data = value.encode()
    if len(data) > STRING_BYTES_MAX:
        raise ValueError(f"a text of {len(data)} bytes, {STRING_BYTES_MAX} are allowed")
    io.write(uvarint(len(data) + 1) + data)


def write_nullable_compact_string(value: str | None, io: BytesIO) -> None:
    """Text behind a uvarint, its length in bytes + 1, or 0 for None."""
    if value is None:
        io.write(b"\0")
    else:
        write_compact_string(value, io)


# Bytes; records are sent alike


def read_bytes(io: BytesIO) -> bytes:
    """Bytes behind an int32 length."""
    return _read(io, _read_length32(io))


def read_nullable_bytes(io: BytesIO) -> bytes | None:
    """Bytes behind an int32 length; the length -1 is None."""
    length = _read_length32(io)
    return None if length == -1 else _read(io, length)


def read_compact_bytes(io: BytesIO) -> bytes:
    """Bytes behind a uvarint, their length + 1."""
    return _read(io, read_uvarint(io) - 1)


def read_nullable_compact_bytes(io: BytesIO) -> bytes | None:
    """Bytes behind a uvarint, their length + 1; 0 is None."""
    length = read_uvarint(io)
    return _read(io, length - 1) if length else None


def write_bytes(value: bytes, io: BytesIO) -> None:
    """Bytes behind an int32 length."""
    io.write(_INT32.pack(len(value)))
    io.write(value)


def write_nullable_bytes(value: bytes | None, io: BytesIO) -> None:
    """Bytes behind an int32 length, -1 for None."""
    if value is None:
        io.write(b"\xff\xff\xff\xff")
    else:
        write_bytes(value, io)


def write_compact_bytes(value: bytes, io: BytesIO) -> None:
    """Bytes behind a uvarint, their length + 1."""
    io.write(uvarint(len(value) + 1))
    io.write(value)


def write_nullable_compact_bytes(value: bytes | None, io: BytesIO) -> None:
    """Bytes behind a uvarint, their length + 1, or 0 for None."""
    if value is None:
        io.write(b"\0")
    else:
        write_compact_bytes(value, io)


# UUIDs


@lru_cache(maxsize=4096)  # making one takes over a microsecond, and ids of topics come again and again
def _uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


def read_uuid(io: BytesIO) -> UUID:
    """16 bytes."""
    return _uuid(_read(io, 16))


def write_uuid(value: UUID, io: BytesIO) -> None:
    """16 bytes."""
    io.write(value.bytes)


# Arrays: a count, and so many elements behind it


def read_count(io: BytesIO) -> int:
    """An int32 count; null is Malformed."""
    return _checked(io, _read_length32(io))


def read_nullable_count(io: BytesIO) -> int | None:
    """An int32 count; -1 is None."""
    count = _read_length32(io)
    return None if count == -1 else _checked(io, count)


def read_compact_count(io: BytesIO) -> int:
    """A uvarint, the count + 1; null is Malformed."""
    return _checked(io, read_uvarint(io) - 1)


def read_nullable_compact_count(io: BytesIO) -> int | None:
    """A uvarint, the count + 1; 0 is None."""
    count = read_uvarint(io)
    return _checked(io, count - 1) if count else None


def _checked(io: BytesIO, count: int) -> int:
    """The count, if so many elements can follow: each takes a byte at least.

    A small one is not compared with what is there, since the elements themselves will find out.
    """
    if count < 0:
        raise Malformed("null, or a negative count, where an array must be")
    if count > _COUNTS_UNCHECKED_MAX:
        here = io.tell()
        remaining = io.seek(0, 2) - here
        io.seek(here)
        if count > remaining:
            raise Malformed(f"{count} elements are announced, {remaining} bytes are there")
    return count


def read_items(
    io: BytesIO, read_count: Callable[[BytesIO], int | None], read: Callable[[BytesIO], _T]
) -> tuple[_T, ...] | None:
    """A count and so many elements, each taken by `read`; None for a null."""
    count = read_count(io)
    return None if count is None else tuple([read(io) for _ in range(count)])


def read_numbers(
    io: BytesIO, read_count: Callable[[BytesIO], int | None], code: str, size: int
) -> tuple[int | float, ...] | None:
    """A count and so many numbers of `size` bytes with the format character `code`; None for a null."""
    count = read_count(io)
    return None if count is None else numbers(code, count).unpack(_read(io, count * size))


def write_count(items: Sequence[object], io: BytesIO) -> None:
    """The count of the items, int32."""
    io.write(_INT32.pack(len(items)))


def write_nullable_count(items: Sequence[object] | None, io: BytesIO) -> None:
    """The count of the items, int32, -1 for None."""
    io.write(_INT32.pack(-1 if items is None else len(items)))


def write_compact_count(items: Sequence[object], io: BytesIO) -> None:
    """The count of the items + 1, uvarint."""
    io.write(uvarint(len(items) + 1))


def write_nullable_compact_count(items: Sequence[object] | None, io: BytesIO) -> None:
    """The count of the items + 1, uvarint, or 0 for None."""
    io.write(b"\0" if items is None else uvarint(len(items) + 1))


def write_items(
    items: Sequence[_T] | None,
    io: BytesIO,
    write_count: Callable[[Sequence[_T] | None, BytesIO], None],
    write: Callable[[_T, BytesIO], None],
) -> None:
    """The count of the items and each of them; for None only what `write_count` makes of it."""
    write_count(items, io)
    for item in items or ():
        write(item, io)


def write_numbers(
    items: Sequence[float] | None,
    io: BytesIO,
    write_count: Callable[[Sequence[float] | None, BytesIO], None],
    code: str,
) -> None:
    """The count of the numbers and all of them with the format character `code`; None as in write_items."""
    write_count(items, io)
    if items:
        io.write(numbers(code, len(items)).pack(*items))


# Structs that may be null


def read_nullable(io: BytesIO, read: Callable[[BytesIO], _T]) -> _T | None:
    """A struct behind one byte; a negative one, properly -1, is None."""
    return None if io.read(1)[0] > 0x7F else read(io)  # noqa: PLR2004 - the bit of the sign


def write_nullable(value: _T | None, io: BytesIO, write: Callable[[_T, BytesIO], None]) -> None:
    """A struct behind the byte 1, or -1 for None."""
    if value is None:
        io.write(b"\xff")
    else:
        io.write(b"\x01")
        write(value, io)


# Tagged fields


def read_tags(io: BytesIO) -> list[tuple[int, BytesIO]]:
    """The tagged fields at the end of a flexible struct: tag, and a stream of the bytes of the field."""
    return [(tag, BytesIO(data)) for tag, data in _read_tags(io, read_uvarint(io))]


def skip_tags(io: BytesIO) -> None:
    """Tagged fields that are all unknown."""
    count = io.read(1)[0]
    if count:  # hardly ever: read_uvarint is spelled out for the sake of the many that have none
        for _ in _read_tags(io, count if count < 0x80 else _read_uvarint_on(io, count)):  # noqa: PLR2004
            pass


def _read_tags(io: BytesIO, count: int) -> Iterator[tuple[int, bytes]]:
    seen = set()
    for _ in range(count):
        tag = read_uvarint(io)
        if tag in seen:
            raise Malformed(f"tag {tag} comes twice")
        seen.add(tag)
        yield tag, _read(io, read_uvarint(io))


def end_tag(io: BytesIO) -> None:
    """Malformed unless the field has been read to the end."""
    if io.read(1):
        raise Malformed("a tagged field is longer than its value")


def write_tags(fields: Sequence[tuple[int, bytes]], io: BytesIO) -> None:
    """Tagged fields, which must be given in the order of their tags."""
    io.write(uvarint(len(fields)))
    io.writelines(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)
