"""The hash of Java's strings, by which Kafka also chooses partitions of its internal topics."""

from __future__ import annotations

import struct


def java_string_hash(text: str) -> int:
    """Return `String.hashCode()`: computed over UTF-16 code units, wrapping to a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in struct.unpack(f">{len(units) // 2}H", units):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code
