"""The names that assertions accept: APIs, errors, states and causes. Any other name raises ValueError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.suggest import LISTED_MAX, UnknownWord, did_you_mean
from ..trace.vocabulary import ALL_GROUP_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable


def require_known(noun: str, name: str, known: Iterable[str]) -> str:
    """Return the name if it is known; else raise ValueError with the closest match, or with the known names."""
    names = list(known)
    if name in names:
        return name
    listed = f"; known: {', '.join(names) or 'none'}" if len(names) <= LISTED_MAX else ""
    hint = did_you_mean(name, names) or listed
    raise UnknownWord(f"{noun} {name!r} is not known{hint}")


def require_state(name: str) -> str:
    """Return a group state as DescribeGroups spells it; raise ValueError for any other."""
    return require_known("the state of a group", name, ALL_GROUP_STATES)
