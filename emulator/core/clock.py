"""The clock of a group: its time, and how that follows the node's.

A group's timers are due in its own time, so that one group can be a day ahead of its neighbours, or stand still. Its
coordinator may change, its clock does not: it belongs to the cluster.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal, cast, get_args

ClockMode = Literal["real", "manual", "auto"]

MODES: tuple[str, ...] = get_args(ClockMode)
"""`real`: it runs as the node's does. `manual`: it stands still until it is moved. `auto`: as `real`, and it jumps over
what a group only waits for (`controls.clocks`)."""


class GroupClock:
    """The time of one group in integer milliseconds.

    Its reading is `now * pace + origin` for the node's time `now`; `pace` is 0 while it stands still, else 1. It never
    goes back.
    """

    __slots__ = ("mode", "origin", "pace")

    def __init__(self, mode: ClockMode, now: int) -> None:
        self.mode: ClockMode = mode
        self.pace = 0 if mode == "manual" else 1
        self.origin = 0 if self.pace else now

    def __repr__(self) -> str:
        return f"<GroupClock {self.mode} pace={self.pace} origin={self.origin}>"

    def read(self, now: int) -> int:
        """What it shows at the node's time `now`."""
        return now * self.pace + self.origin

    def due_at(self, deadline: int, now: int) -> int | None:
        """When a deadline in the group's time comes, in the node's; None while it stands still before that.

        If it stands at the deadline or past it that is `now`. If it runs the answer may be in the past.
        """
        if self.pace:
            return deadline - self.origin
        return now if deadline <= self.origin else None

    def set_mode(self, now: int, mode: str) -> None:
        """Let it run another way from now on, from what it shows. Raises ValueError for an unknown mode."""
        known = mode_of(mode)
        reading = self.read(now)
        self.mode = known
        self.pace = 0 if known == "manual" else 1
        self.origin = reading - now * self.pace

    def move_to(self, now: int, reading: int) -> None:
        """Put it ahead. A clock never goes back: ValueError."""
        shown = self.read(now)
        if reading < shown:
            raise ValueError(f"the clock shows {shown} ms and cannot go back to {reading} ms")
        self.origin += reading - shown

    @property
    def is_plain(self) -> bool:
        """Whether it shows the node's time and does nothing else."""
        return self.mode == "real" and not self.origin


def mode_of(mode: str) -> ClockMode:
    """A mode by its name. Raises ValueError, which names the modes there are."""
    if mode not in MODES:
        near = get_close_matches(str(mode), MODES, n=1)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        raise ValueError(f"clock {mode!r}: must be {', '.join(MODES[:-1])} or {MODES[-1]}{hint}")
    return cast("ClockMode", mode)
