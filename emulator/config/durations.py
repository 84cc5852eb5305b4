"""Durations as Java writes them: `PT1H30M`, `P2D` (`java.time.Duration.parse`)."""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?0*[0-9]{1,19})D)?(?:T(?=[-+0-9])(?:([-+]?0*[0-9]{1,19})H)?(?:([-+]?0*[0-9]{1,19})M)?"
    r"(?:([-+]?0*[0-9]{1,19})(?:[.,]([0-9]{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)

_SECONDS_MAX = 2**63 - 1
_NS_PER_S = 10**9


def duration_ns(text: str) -> int | None:
    """Return a duration in nanoseconds, or None if Java cannot read it: no months or years, seconds in 64 bits."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        return None
    sign, days, hours, minutes, seconds, fraction = found.groups(default="")
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    part = int((fraction or "0").ljust(9, "0")) * (-1 if seconds.startswith("-") else 1)
    ns = (whole * _NS_PER_S + part) * (-1 if sign == "-" else 1)
    return ns if -_SECONDS_MAX - 1 <= ns // _NS_PER_S <= _SECONDS_MAX else None
