"""Durations as they are written: seconds as a number, or text such as "7d", "5m", "45s" and "250ms"."""

from __future__ import annotations

import math
import re

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

DURATION_MS_MAX = 1_000 * 365 * UNITS_MS["d"]
"""A thousand years; timestamps of Kafka hold much more, but nothing is due by then."""

WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", re.ASCII)


def duration_ms(duration: float | str) -> int:
    """A duration in whole milliseconds. ValueError for what is negative, too long, or not a duration."""
    ms = _read(duration)
    if ms is None:
        raise ValueError(
            f"{duration!r} is not a duration: give seconds as a number, or text such as '7d', '5m', '45s' or '250ms'"
        )
    if ms < 0:
        raise ValueError(f"the duration {duration!r} is negative: time goes only ahead")
    if ms > DURATION_MS_MAX:
        raise ValueError(f"the duration {duration!r} is longer than 1000 years")
    return round(ms)


def _read(duration: object) -> float | None:
    if isinstance(duration, str):
        text = duration.strip()
        written = WRITTEN.fullmatch(text.removeprefix("-"))
        if written is None:
            return None
        ms = float(written[1]) * UNITS_MS[written[2]]
        return -ms if text.startswith("-") else ms
    # a bool is an int to Python
    if not isinstance(duration, int | float) or isinstance(duration, bool) or not math.isfinite(duration):
        return None
    return duration * 1_000
