"""Ranges of versions, written as in the JSON schemas of Apache Kafka: "0-9", "6+", "2", "none"."""

import re
from collections.abc import Iterator

_TEXT = re.compile(r"(\d+)(?:(\+)|-(\d+))?")

HIGHEST = 32767
"""The end of an open range such as "6+": the highest int16."""


class Versions:
    """A range of versions, both ends included: `5 in Versions("0-9")`.

    "6+" ends at HIGHEST; "none" is empty, with min 0 and max -1. Raises ValueError for any other text. Equal and hashed
    by both ends.
    """

    __slots__ = ("max", "min")

    min: int
    max: int

    def __init__(self, text: str) -> None:
        if text == "none":
            self.min, self.max = 0, -1
            return
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f'expected versions such as "0-9", "6+", "2" or "none", not {text!r}')
        first, is_open, last = match.groups()
        self.min = int(first)
        self.max = HIGHEST if is_open else int(last or first)
        if self.max < self.min:
            raise ValueError(f"the versions {text!r} end before they start")

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.min, self.max + 1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Versions):
            return NotImplemented
        return (self.min, self.max) == (other.min, other.max)

    def __hash__(self) -> int:
        return hash((self.min, self.max))

    def __str__(self) -> str:
        if self.max < self.min:
            return "none"
        if self.max == self.min:
            return str(self.min)
        return f"{self.min}+" if self.max == HIGHEST else f"{self.min}-{self.max}"

    def __repr__(self) -> str:
        return f'Versions("{self}")'
