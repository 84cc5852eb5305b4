"""What to say of a name that nobody knows: what there is, and which of it was probably meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMED_MAX = 12
"""Of more names than that only the nearest is said."""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """A sentence such as `unknown API 'OffsetComit'; the nearest is 'OffsetCommit'`."""
    names = list(known)
    by_lower = {each.lower(): each for each in names}
    near = get_close_matches(str(name).lower(), by_lower, n=1)
    hint = f"; the nearest is {by_lower[near[0]]!r}" if near else ""
    listed = f"; there are {', '.join(names)}" if names and len(names) <= NAMED_MAX else ""
    return f"unknown {what} {name!r}{hint}{listed}"
