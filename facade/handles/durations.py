"""Durations as tests write them: seconds, text such as "5s", or a timedelta."""

from __future__ import annotations

from datetime import timedelta

from koordinator.emulator.control.time.durations import duration_ms

Duration = float | str | timedelta
"""Seconds, a text such as "7d", "5m", "45s" and "250ms", or a timedelta."""

Milliseconds = int | str | timedelta
"""Milliseconds, where Kafka's own unit is in the name, or a duration as text or timedelta."""


def ms_of(duration: Duration, *, may_be_negative: bool = False) -> int:
    """Return a duration in milliseconds. Raises InvalidDuration (a ValueError) for a text that is none."""
    if isinstance(duration, timedelta):
        duration = f"{duration // timedelta(milliseconds=1)}ms"
    if may_be_negative and isinstance(duration, str) and duration.startswith("-"):
        return -duration_ms(duration[1:])
    if may_be_negative and not isinstance(duration, str) and duration < 0:
        return -duration_ms(-duration)
    return duration_ms(duration)


def ms_if_any(duration: Duration | None) -> int | None:
    """Return a duration in milliseconds, or None."""
    return None if duration is None else ms_of(duration)


def seconds_of(duration: Duration) -> float:
    """Return a duration in seconds. Raises InvalidDuration (a ValueError) if it is negative, or a text that is none."""
    return ms_of(duration) / 1000


def whole_ms_of(duration: Milliseconds) -> int:
    """Return a number of milliseconds, or a duration as text or timedelta in milliseconds."""
    return ms_of(duration) if isinstance(duration, str | timedelta) else duration
