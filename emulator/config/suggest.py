"""Suggestions for misspelt names: the one place that decides which known name is meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTED_MAX = 12
"""The most known names that a message lists."""


class UnknownWord(ValueError):
    """A value that is none of the words of its argument."""


def closest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, ignoring case and punctuation; None if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only misspelt names need it

    names = {_plain(each): each for each in known}
    matches = get_close_matches(_plain(name), names, n=1)
    return names[matches[0]] if matches else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the end of an error message, `; did you mean 'OffsetCommit'?`, or an empty text."""
    match = closest(name, known)
    return "" if match is None else f"; did you mean {match!r}?"


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return an error message such as `unknown API 'OffsetComit'; did you mean 'OffsetCommit'?`."""
    names = list(known)
    listed = f"; known: {', '.join(names)}" if names and len(names) <= LISTED_MAX else ""
    return f"unknown {kind} {name!r}{listed}{did_you_mean(name, names)}"


def _plain(name: object) -> str:
    return re.sub(r"[\W_]", "", str(name)).lower()
