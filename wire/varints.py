"""The zig-zag varints of records, and the keys, values and headers after them (`ByteUtils`).

They work on positions in bytes instead of streams: a batch may have thousands of them.
"""

from .primitives import Malformed

VARINT_BYTES = 5
VARLONG_BYTES = 10


def varint(data: bytes, at: int, most: int = VARINT_BYTES) -> tuple[int, int]:
    """Return a number and the position after it. Raises IndexError for truncated data, Malformed for a long number."""
    byte = data[at]
    at += 1
    raw = byte & 0x7F
    shift = 0
    while byte & 0x80:
        shift += 7
        if shift >= 7 * most:
            raise Malformed(f"a number of more than {most} bytes")
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
    # excess bits are dropped, as in Java
    raw &= 0xFFFFFFFF if most == VARINT_BYTES else 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), at


def varbytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the bytes after their length, or None, and the position after them. Raises Malformed if some are missing.

    Raises IndexError for a truncated length.
    """
    size, at = varint(data, at)
    if size < 0:
        return None, at
    if size > len(data) - at:
        raise Malformed(f"{size} bytes, {len(data) - at} bytes left")
    return data[at : at + size], at + size


def zigzag(number: int) -> bytes:
    """Return a number of at most 64 bits as a varint."""
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw > 0x7F:  # noqa: PLR2004 - seven bits per byte
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def sized(content: bytes | None) -> tuple[bytes, bytes]:
    """Return the length of the bytes, -1 for None, and the bytes."""
    return (zigzag(-1), b"") if content is None else (zigzag(len(content)), content)
