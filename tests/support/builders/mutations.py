"""Valid frames made invalid: flipped, cut, spliced, and with false counts and lengths."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

LENGTH = struct.Struct(">i")
EXTREMES = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\x00\x00",
    b"\x7f\xff",
    b"\x80\x00",
    b"\xff\xff",
    b"\xff\xfe",
    b"\x00\x00\x00\x00",
    b"\x00\x00\x01\x00",
    b"\x00\x01\x00\x00",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x01",
    b"\xed\xa0\x80",
)
"""Extreme numbers, lengths, counts and uvarints; and a lone surrogate in place of UTF-8."""

LENGTHS = (-(2**31), -1, 0, 1, 2**31 - 1, 100 * 2**20 + 1)
SPLICE = 24


class Mutations:
    """Mutated frames from a random source."""

    def __init__(self, chance: random.Random, frames: Sequence[bytes]) -> None:
        self._chance = chance
        self._frames = frames
        self._ways: tuple[Callable[[bytearray], None], ...] = (
            self._flip,
            self._flip,
            self._extreme,
            self._extreme,
            self._extreme,
            self._overwrite,
            self._cut,
            self._insert,
            self._remove,
            self._repeat,
            self._splice,
            self._header,
        )

    def random_bytes(self) -> bytes:
        """Return random bytes, half the time behind a correct length, and sometimes behind an API key."""
        chance = self._chance
        data = chance.randbytes(chance.choice((0, 1, 3, 4, 5, 8, 12, 40, 400)))
        if chance.random() < 0.5:
            data = chance.choice(self._frames)[4:8] + data if chance.random() < 0.5 else data
            data = LENGTH.pack(len(data)) + data
        return data

    def mutated(self) -> bytes:
        """Return a valid frame after one to four mutations; one in twenty also has a wrong length prefix."""
        chance = self._chance
        body = bytearray(chance.choice(self._frames)[4:])
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            chance.choice(self._ways)(body)
        length = len(body) if chance.random() < 0.95 else chance.choice((*LENGTHS, len(body) - 1, len(body) + 1))
        return LENGTH.pack(length) + body

    def _at(self, body: bytearray) -> int:
        return self._chance.randrange(len(body) + 1)

    def _flip(self, body: bytearray) -> None:
        if body:
            body[self._chance.randrange(len(body))] ^= 1 << self._chance.randrange(8)

    def _extreme(self, body: bytearray) -> None:
        at, value = self._at(body), self._chance.choice(EXTREMES)
        body[at : at + len(value)] = value

    def _overwrite(self, body: bytearray) -> None:
        at, value = self._at(body), self._chance.randbytes(self._chance.choice((1, 2, 4)))
        body[at : at + len(value)] = value

    def _cut(self, body: bytearray) -> None:
        del body[self._at(body) :]

    def _insert(self, body: bytearray) -> None:
        at = self._at(body)
        body[at:at] = self._chance.choice(EXTREMES)

    def _remove(self, body: bytearray) -> None:
        at = self._at(body)
        del body[at : at + self._chance.choice((1, 2, 4, 8))]

    def _repeat(self, body: bytearray) -> None:
        at, size = self._at(body), self._chance.choice((1, 2, 4, 16))
        body[at:at] = body[at : at + size] * self._chance.choice((1, 2, 50))

    def _splice(self, body: bytearray) -> None:
        at, other = self._at(body), self._chance.choice(self._frames)[4:]
        begin = self._chance.randrange(len(other) + 1)
        body[at : at + SPLICE] = other[begin : begin + self._chance.choice((4, SPLICE, 400))]

    def _header(self, body: bytearray) -> None:
        """Put another API or version in front of the body."""
        other = self._chance.choice(self._frames)
        if self._chance.random() < 0.5:
            body[0:4] = other[4:8]
        else:
            body[2:4] = struct.pack(">h", self._chance.choice((-1, 0, 1, 2, 5, 9, 13, 99, 32_767)))
