"""Durations in arguments: seconds as a number, or text such as "7d", "5m", "45s" and "250ms"."""

from __future__ import annotations

import math
import re

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

DURATION_MS_MAX = 1_000 * 365 * UNITS_MS["d"]
"""A thousand years, far below the range of Kafka's timestamps."""

_TEXT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", re.ASCII)


class InvalidDuration(ValueError):
    """A value that is no duration, or one that no clock can be advanced by."""


def duration_ms(duration: float | str) -> int:
    """Return a duration in whole milliseconds. Raises InvalidDuration if it is negative, too long, or no duration."""
    ms = _parse(duration)
    if ms is None:
        raise InvalidDuration(
            f"{duration!r} is not a duration: use seconds as a number, or text such as '7d', '5m', '45s' or '250ms'"
        )
    if ms < 0:
        raise InvalidDuration(f"the duration {duration!r} is negative: a clock cannot go back")
    if ms > DURATION_MS_MAX:
        raise InvalidDuration(f"the duration {duration!r} is longer than 1000 years")
    return round(ms)


def _parse(duration: object) -> float | None:
    if isinstance(duration, str):
        text = duration.strip()
        match = _TEXT.fullmatch(text.removeprefix("-"))
        if match is None:
            return None
        ms = float(match[1]) * UNITS_MS[match[2]]
        return -ms if text.startswith("-") else ms
    # bool is a subclass of int
    if not isinstance(duration, int | float) or isinstance(duration, bool) or not math.isfinite(duration):
        return None
    return duration * 1_000
