"""The times of log lines, and a clock that is never set back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

_TIME = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,6}))?\d*"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_LIBRDKAFKA = re.compile(r"%\d\|(\d{1,12})\.(\d{3})(?:\||\Z)", re.ASCII)
_TIME_LINE = re.compile(
    r"(?P<date>[A-Z][a-z]{2} \d{1,2}, \d{4}) (?:@ (?P<kibana>\d\d:\d\d:\d\d)\.(?P<millis>\d{3})\s*\Z"
    r"|(?P<logging>\d{1,2}:\d\d:\d\d[ \u202f][AP]M) \S+ \S+\s*\Z)",
    re.ASCII,
)
"""A line that has the time of the next one: an export of Kibana, and java.util.logging's SimpleFormatter."""

SECOND_US = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_US_END = 1 << 52


class WallTime(NamedTuple):
    """Microseconds since the epoch, and how much later the same local time occurs again; 0 if it occurs once."""

    us: int
    repeated_us: int = 0


def zone_of(name: str) -> tzinfo:
    """Return a zone like `Europe/Berlin` or `+02:00`."""
    if name == "UTC":
        return UTC
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if offset is None:
        return ZoneInfo(name)
    span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
    return timezone(-span if offset[1] == "-" else span)


def time_in(text: str, zone: tzinfo) -> WallTime | None:
    """Return the last time in a text; None if there is none, or an impossible one.

    A time without an offset is in `zone`, and in the repeated hour of autumn in its first occurrence.
    """
    librdkafka = _LIBRDKAFKA.match(text)
    if librdkafka:
        return at(int(librdkafka[1]) * SECOND_US + int(librdkafka[2]) * 1000)
    last = None
    for last in _TIME.finditer(text):  # noqa: B007 - only the last one counts
        pass
    if last is None:
        return None
    try:
        local = datetime.fromisoformat(f"{last['date']} {last['time']}.{(last['fraction'] or '').ljust(6, '0')}")
        own = None if last["zone"] is None else UTC if last["zone"] == "Z" else zone_of(last["zone"])
        return _wall_time(local, own or zone)
    except (ValueError, OverflowError):
        return None


def time_of_next(text: str, zone: tzinfo) -> WallTime | None:
    """Return the time in a line that has nothing but the time of the next line; None for any other line."""
    match = _TIME_LINE.match(text)
    if match is None:
        return None
    try:
        if match["kibana"]:
            local = datetime.strptime(f"{match['date']} {match['kibana']}", "%b %d, %Y %H:%M:%S")  # noqa: DTZ007 - local
            return _wall_time(local + timedelta(milliseconds=int(match["millis"])), zone)
        clock = match["logging"].replace("\u202f", " ")
        return _wall_time(datetime.strptime(f"{match['date']} {clock}", "%b %d, %Y %I:%M:%S %p"), zone)  # noqa: DTZ007 - local
    except (ValueError, OverflowError):
        return None


def at(us: int, repeated_us: int = 0) -> WallTime | None:
    """Return a time; None if it is not between 1970 and 2112, because no sequence number can have it."""
    return WallTime(us, repeated_us) if 0 <= us < _US_END else None


def _wall_time(local: datetime, zone: tzinfo) -> WallTime | None:
    first, second = (local.replace(tzinfo=zone, fold=fold) - _EPOCH for fold in (0, 1))
    return at(first // timedelta(microseconds=1), max(0, (second - first) // timedelta(microseconds=1)))


class Clock:
    """The clock of one log, in the order of its lines.

    The order of lines counts. After the clock was set back in the hour that occurs twice, lines belong to its second
    occurrence. While any other clock that was set back catches up, the result stands still.
    """

    def __init__(self) -> None:
        self._before_us: int | None = None
        self._is_second = False
        self.now_us: int | None = None

    def read(self, time: WallTime) -> int:
        """Return the wall clock of a line, and move `now_us` on."""
        set_back = self._before_us is not None and self._before_us - time.us >= SECOND_US
        self._is_second = bool(time.repeated_us) and (self._is_second or set_back)
        self._before_us = time.us
        us = time.us + (time.repeated_us if self._is_second else 0)
        self.now_us = us if self.now_us is None else max(self.now_us, us)
        return us
