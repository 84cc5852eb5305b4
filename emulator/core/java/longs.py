"""The arithmetic of Java's `long`."""

from __future__ import annotations

LONG_MAX = 2**63 - 1


def as_long(number: int) -> int:
    """Return a sum as Java computes it with longs: it overflows."""
    return (number + 2**63) % 2**64 - 2**63
