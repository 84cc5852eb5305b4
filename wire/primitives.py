"""The primitive types of messages: functions that read them from and write them to a stream.

A `read_x(io)` consumes a value from the stream. Invalid bytes raise Malformed; missing bytes of a number may also raise
IndexError or struct.error. koordinator.wire.codec converts all of these to Malformed. As in Kafka, bytes of a string
that are not UTF-8 are replaced by U+FFFD, and any negative length of a nullable value is null. A `write_x(value, io)`
raises Python's own error for a value of another type; the codec converts it to ValueError.

"Compact" is the encoding of flexible versions (KIP-482): lengths and counts are uvarints, increased by one so that 0 is
null. Lengths and counts come from the peer, so the bytes are read before memory is allocated for them.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from typing import TypeVar
from uuid import UUID

_T = TypeVar("_T")

ZERO_UUID = UUID(int=0)
"""The value of a missing topic or directory id."""

STRING_BYTES_MAX = 0x7FFF
"""The maximum length of a string in UTF-8 bytes; compact strings have the same limit."""

ARRAY_COUNT_MAX = 1_000_000
TAG_COUNT_MAX = 10_000
"""The maximum counts of elements and of tagged fields in `BoundedBytes` (`MessageUtil` of Kafka 4.4)."""

_COUNTS_UNCHECKED_MAX = 255
_UVARINT_BYTES_MAX = 5
_UVARINT_MAX = 0xFFFFFFFF

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_BYTE = tuple(bytes([value]) for value in range(128))


class Malformed(ValueError):
    """Invalid bytes from a peer, whose connection is then closed."""


class InvalidLength(Malformed):
    """A negative count or length, or one beyond the end of the data.

    Kafka's parser has no exception of its own for it, so that its coordinators fail where data that end within a number
    are only unreadable (`ByteBufferAccessor`, `SchemaException`).
    """


class BoundedBytes(BytesIO):
    """A stream whose arrays and tagged fields are refused above ARRAY_COUNT_MAX and TAG_COUNT_MAX."""


# Numbers


@lru_cache(maxsize=512)  # bounded, because the counts come from the peer
def numbers(code: str, count: int) -> struct.Struct:
    """Return the big-endian struct of `count` numbers with one format character."""
    return struct.Struct(f">{count}{code}")


def read_uvarint(io: BytesIO) -> int:
    """Read an unsigned number of at most 32 bits: 7 bits per byte, least significant first."""
    value = io.read(1)[0]
    return value if value < 0x80 else _read_uvarint_on(io, value)  # noqa: PLR2004 - the continuation bit


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
    """Return an unsigned number as a uvarint."""
    if value < 0x80:  # noqa: PLR2004 - the continuation bit
        return _BYTE[value]
    data = bytearray()
    while value >= 0x80:  # noqa: PLR2004
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _read(io: BytesIO, length: int) -> bytes:
    """Read exactly `length` bytes; a negative length is an invalid null."""
    data = io.read(length)
    if len(data) != length:
        raise _truncated(length, data)
    return data


def _truncated(length: int, data: bytes) -> InvalidLength:
    if length < 0:
        return InvalidLength("null, or a negative length, in a field that is not nullable")
    return InvalidLength(f"{length} bytes expected, {len(data)} received")


def _read_length32(io: BytesIO) -> int:
    length: int = _INT32.unpack(io.read(4))[0]
    return length


# Strings


def read_string(io: BytesIO) -> str:
    """Read a string after its int16 length."""
    length: int = _INT16.unpack(io.read(2))[0]
    data = io.read(length)
    if len(data) != length:
        raise _truncated(length, data)
    try:  # naming the error handler would cost a third of the time
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace")


def read_nullable_string(io: BytesIO) -> str | None:
    """Read a string after its int16 length; a negative one is None."""
    length: int = _INT16.unpack(io.read(2))[0]
    return None if length < 0 else _read(io, length).decode(errors="replace")


def read_compact_string(io: BytesIO) -> str:
    """Read a string after its length + 1 as uvarint. Raises Malformed above STRING_BYTES_MAX, as Kafka does."""
    length = read_uvarint(io) - 1
    data = io.read(length)
    if len(data) != length:  # includes null, whose length is -1
        raise InvalidLength("null" if length < 0 else f"{length} bytes expected, {len(data)} received")
    if length > STRING_BYTES_MAX:
        raise _too_long(length)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace")


def read_nullable_compact_string(io: BytesIO) -> str | None:
    """Read a string after its length + 1 as uvarint; 0 is None. Raises Malformed above STRING_BYTES_MAX."""
    length = read_uvarint(io) - 1
    if length < 0:
        return None
    if length > STRING_BYTES_MAX:
        raise _too_long(length)
    data = io.read(length)
    if len(data) != length:
        raise _truncated(length, data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace")


def _too_long(length: int) -> Malformed:
    return Malformed(f"a string of {length} bytes; {STRING_BYTES_MAX} are allowed")


def write_string(value: str, io: BytesIO) -> None:
    """Write a string after its int16 length. Raises struct.error above 32767 bytes."""
    data = value.encode()
    io.write(_INT16.pack(len(data)) + data)


def write_nullable_string(value: str | None, io: BytesIO) -> None:
    """Write a string after its int16 length, -1 for None."""
    if value is None:
        io.write(b"\xff\xff")
    else:
        write_string(value, io)


def write_compact_string(value: str, io: BytesIO) -> None:
    """Write a string after its length + 1 as uvarint. Raises ValueError above STRING_BYTES_MAX."""
    data = value.encode()
    if len(data) > STRING_BYTES_MAX:
        raise ValueError(f"a string of {len(data)} bytes; {STRING_BYTES_MAX} are allowed")
    io.write(uvarint(len(data) + 1) + data)


def write_nullable_compact_string(value: str | None, io: BytesIO) -> None:
    """Write a string after its length + 1 as uvarint, 0 for None."""
    if value is None:
        io.write(b"\0")
    else:
        write_compact_string(value, io)


# Bytes; records have the same encoding


def read_bytes(io: BytesIO) -> bytes:
    """Read bytes after their int32 length."""
    length: int = _INT32.unpack(io.read(4))[0]
    data = io.read(length)
    if len(data) != length:
        raise _truncated(length, data)
    return data


def read_nullable_bytes(io: BytesIO) -> bytes | None:
    """Read bytes after their int32 length; a negative one is None."""
    length = _read_length32(io)
    return None if length < 0 else _read(io, length)


def read_compact_bytes(io: BytesIO) -> bytes:
    """Read bytes after their length + 1 as uvarint."""
    return _read(io, read_uvarint(io) - 1)


def read_nullable_compact_bytes(io: BytesIO) -> bytes | None:
    """Read bytes after their length + 1 as uvarint; 0 is None."""
    length = read_uvarint(io)
    return _read(io, length - 1) if length else None


def write_bytes(value: bytes, io: BytesIO) -> None:
    """Write bytes after their int32 length."""
    io.write(_INT32.pack(len(value)))
    io.write(value)


def write_nullable_bytes(value: bytes | None, io: BytesIO) -> None:
    """Write bytes after their int32 length, -1 for None."""
    if value is None:
        io.write(b"\xff\xff\xff\xff")
    else:
        write_bytes(value, io)


def write_compact_bytes(value: bytes, io: BytesIO) -> None:
    """Write bytes after their length + 1 as uvarint."""
    io.write(uvarint(len(value) + 1))
    io.write(value)


def write_nullable_compact_bytes(value: bytes | None, io: BytesIO) -> None:
    """Write bytes after their length + 1 as uvarint, 0 for None."""
    if value is None:
        io.write(b"\0")
    else:
        write_compact_bytes(value, io)


# UUIDs


@lru_cache(maxsize=4096)  # creating one takes over a microsecond, and topic ids repeat
def _uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


def read_uuid(io: BytesIO) -> UUID:
    """Read a UUID of 16 bytes."""
    return _uuid(_read(io, 16))


def write_uuid(value: UUID, io: BytesIO) -> None:
    """Write a UUID of 16 bytes."""
    io.write(value.bytes)


# Arrays: a count, then the elements


def read_count(io: BytesIO) -> int:
    """Read an int32 count. Raises Malformed for null."""
    count: int = _INT32.unpack(io.read(4))[0]
    # a call would take longer than most arrays, which are short
    return count if 0 <= count <= _COUNTS_UNCHECKED_MAX else _require_count(io, count)


def read_nullable_count(io: BytesIO) -> int | None:
    """Read an int32 count; a negative one is None."""
    count = _read_length32(io)
    return None if count < 0 else _require_count(io, count)


def read_compact_count(io: BytesIO) -> int:
    """Read a count + 1 as uvarint. Raises Malformed for null."""
    return _require_count(io, read_uvarint(io) - 1)


def read_nullable_compact_count(io: BytesIO) -> int | None:
    """Read a count + 1 as uvarint; 0 is None."""
    count = read_uvarint(io)
    return _require_count(io, count - 1) if count else None


def _require_count(io: BytesIO, count: int) -> int:
    """Return the count if enough bytes remain: each element takes at least one.

    Small counts are not checked here; reading the elements detects missing bytes.
    """
    if count < 0:
        raise InvalidLength("null, or a negative count, in an array that is not nullable")
    if count > _COUNTS_UNCHECKED_MAX:
        check_remaining(io, count)
    return count


def check_remaining(io: BytesIO, count: int) -> None:
    """Raise InvalidLength for a count above the number of bytes that are left, or above the limit of the stream."""
    here = io.tell()
    remaining = io.seek(0, 2) - here
    io.seek(here)
    if count > remaining:
        raise InvalidLength(f"{count} elements expected, {remaining} bytes left")
    if count > ARRAY_COUNT_MAX and isinstance(io, BoundedBytes):
        raise InvalidLength(f"an array of {count} elements; {ARRAY_COUNT_MAX} are allowed")


def read_items(
    io: BytesIO, read_count: Callable[[BytesIO], int | None], read: Callable[[BytesIO], _T]
) -> tuple[_T, ...] | None:
    """Read an array whose elements `read` consumes; None for null."""
    count = read_count(io)
    if not count:
        return None if count is None else ()
    return tuple([read(io) for _ in range(count)])


def read_numbers(
    io: BytesIO, read_count: Callable[[BytesIO], int | None], code: str, size: int
) -> tuple[int | float, ...] | None:
    """Read an array of numbers of `size` bytes with the format character `code`; None for null."""
    count = read_count(io)
    return None if count is None else numbers(code, count).unpack(_read(io, count * size))


def write_count(items: Sequence[object], io: BytesIO) -> None:
    """Write the number of items as int32."""
    io.write(_INT32.pack(len(items)))


def write_nullable_count(items: Sequence[object] | None, io: BytesIO) -> None:
    """Write the number of items as int32, -1 for None."""
    io.write(_INT32.pack(-1 if items is None else len(items)))


def write_compact_count(items: Sequence[object], io: BytesIO) -> None:
    """Write the number of items + 1 as uvarint."""
    io.write(uvarint(len(items) + 1))


def write_nullable_compact_count(items: Sequence[object] | None, io: BytesIO) -> None:
    """Write the number of items + 1 as uvarint, 0 for None."""
    io.write(b"\0" if items is None else uvarint(len(items) + 1))


def write_items(
    items: Sequence[_T] | None,
    io: BytesIO,
    write_count: Callable[[Sequence[_T] | None, BytesIO], None],
    write: Callable[[_T, BytesIO], None],
) -> None:
    """Write the count and each item; for None only the count."""
    write_count(items, io)
    for item in items or ():
        write(item, io)


def write_numbers(
    items: Sequence[float] | None,
    io: BytesIO,
    write_count: Callable[[Sequence[float] | None, BytesIO], None],
    code: str,
) -> None:
    """Write the count and the numbers with the format character `code`; for None only the count."""
    write_count(items, io)
    if items:
        io.write(numbers(code, len(items)).pack(*items))


# Nullable structs


def read_nullable(io: BytesIO, read: Callable[[BytesIO], _T]) -> _T | None:
    """Read a struct after its marker byte; a negative marker (-1 by the protocol) is None."""
    return None if io.read(1)[0] > 0x7F else read(io)  # noqa: PLR2004 - the sign bit


def write_nullable(value: _T | None, io: BytesIO, write: Callable[[_T, BytesIO], None]) -> None:
    """Write a struct after the byte 1, or -1 for None."""
    if value is None:
        io.write(b"\xff")
    else:
        io.write(b"\x01")
        write(value, io)


def read_tagged_nullable(io: BytesIO, read: Callable[[BytesIO], _T]) -> _T | None:
    """Read a struct of a tagged field after its marker, an unsigned varint; 0 is None."""
    return read(io) if read_uvarint(io) else None


def write_tagged_nullable(value: _T | None, io: BytesIO, write: Callable[[_T, BytesIO], None]) -> None:
    """Write a struct of a tagged field after the byte 1, or 0 for None."""
    io.write(b"\0" if value is None else b"\x01")
    if value is not None:
        write(value, io)


# Tagged fields


def read_tags(io: BytesIO) -> list[tuple[int, BytesIO]]:
    """Read the tagged fields of a flexible struct: tags, with streams of their bytes."""
    return [(tag, BytesIO(data)) for tag, data in _read_tags(io, read_uvarint(io))]


def skip_tags(io: BytesIO) -> None:
    """Skip tagged fields."""
    count = io.read(1)[0]
    if count:  # rare: read_uvarint is inlined for the common case of no fields
        for _ in _read_tags(io, count if count < 0x80 else _read_uvarint_on(io, count)):  # noqa: PLR2004
            pass


def _read_tags(io: BytesIO, count: int) -> Iterator[tuple[int, bytes]]:
    if count > TAG_COUNT_MAX and isinstance(io, BoundedBytes):
        raise InvalidLength(f"{count} tagged fields; {TAG_COUNT_MAX} are allowed")
    for _ in range(count):
        tag = read_uvarint(io)
        yield tag, _read(io, read_uvarint(io))


def end_tag(io: BytesIO) -> None:
    """Raise Malformed unless the field is consumed."""
    if io.read(1):
        raise Malformed("a tagged field is longer than its value")


def write_tags(fields: Sequence[tuple[int, bytes]], io: BytesIO) -> None:
    """Write tagged fields; the caller passes them in the order of their tags."""
    io.write(uvarint(len(fields)))
    io.writelines(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)
