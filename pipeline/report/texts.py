"""How values are written, in the page, the charts and the summary."""

from __future__ import annotations

import re

NONE = "-"
"""What nobody knows, or what does not apply."""

NAME_MAX = 64

UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def milliseconds(value: float | None) -> str:
    """A time: 0.4 ms, 12 ms, 1.25 s, 3 min 20 s, 2 h 5 min."""
    if value is None:
        return NONE
    if value < 1000:  # noqa: PLR2004 - a second
        return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"  # noqa: PLR2004 - three digits are enough
    return seconds(value / 1000)


def seconds(value: float | None) -> str:
    """A time that is given in seconds."""
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
    """A time that is given in hours."""
    return seconds(None if value is None else value * 3600)


def count(value: float | None) -> str:
    """A number of things: 12,345."""
    return NONE if value is None else f"{value:,.0f}"


def things(value: float | None, noun: str) -> str:
    """How many of something: 1 test, 12,345 tests."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def ratio(value: float | None) -> str:
    """A share: 12 %."""
    if value is None:
        return NONE
    return f"{value:.0%}" if value >= 0.1 or not value else f"{value:.2%}"  # noqa: PLR2004 - two digits are enough


def number(value: float | None) -> str:
    """Any other number."""
    return NONE if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - likewise


def short(name: str | None) -> str:
    """A name as far as there is room: of a UUID its beginning, of a long name both ends."""
    if name is None:
        return NONE
    text = UUID.sub(r"\1…", name)
    if len(text) <= NAME_MAX:
        return text
    half = (NAME_MAX - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
