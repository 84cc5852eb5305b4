"""Formatting of values in the page, the charts and the summary."""

from __future__ import annotations

import re

from koordinator.trace.names import UUID

NONE = "\N{EN DASH}"
"""Text of a value that is unknown or does not apply."""

NAME_MAX = 64

_UUID = re.compile(rf"\b{UUID}\b")

DIGITS_SHOWN = 8


def milliseconds(value: float | None) -> str:
    """Format a time: 0.4 ms, 12 ms, 1.25 s, 3 min 20 s, 2 h 5 min."""
    if value is None:
        return NONE
    if value < 1000:  # noqa: PLR2004 - a second
        return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"  # noqa: PLR2004 - three digits are enough
    return seconds(value / 1000)


def seconds(value: float | None) -> str:
    """Format a time given in seconds."""
    if value is None:
        return NONE
    if value < 1:
        return milliseconds(value * 1000) if value else "0 s"
    if value < 60:  # noqa: PLR2004 - a minute
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    shown = [f"{number:,} {unit}" for number, unit in parts if number]
    return " ".join(shown[:2])


def hours(value: float | None) -> str:
    """Format a time given in hours."""
    return seconds(None if value is None else value * 3600)


def count(value: float | None) -> str:
    """Format a count: 12,345."""
    return NONE if value is None else f"{value:,.0f}"


def things(value: float | None, noun: str) -> str:
    """Format a count with its noun: 1 test, 12,345 tests."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def ratio(value: float | None) -> str:
    """Format a share: 12 %."""
    if value is None:
        return NONE
    return f"{value:.0%}" if value >= 0.1 or not value else f"{value:.2%}"  # noqa: PLR2004 - two digits are enough


def number(value: float | None) -> str:
    """Format any other number."""
    return NONE if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - three digits are enough


def short(name: str | None) -> str:
    """Shorten a name: the beginning of a UUID, both ends of a long name."""
    if name is None:
        return NONE
    text = _UUID.sub(lambda match: f"{match[0][:DIGITS_SHOWN]}…", name)
    if len(text) <= NAME_MAX:
        return text
    half = (NAME_MAX - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
