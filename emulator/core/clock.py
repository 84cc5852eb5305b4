"""The clock of a group: its time, and its relation to the node's time.

A group's timers are due in the group's own time, so that one group can be a day ahead of the others, or stand still.
The clock belongs to the cluster: it survives a change of coordinator.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

from ..config.suggest import UnknownWord, did_you_mean

ClockMode = Literal["real", "manual", "auto"]

MODES: tuple[str, ...] = get_args(ClockMode)
"""`real` follows the node's time. `manual` stands still until it is moved. `auto` is `real`, and jumps over waiting
times (`control.time`)."""


class GroupClock:
    """The time of one group in integer milliseconds.

    It reads `now * pace + origin` at node time `now`; `pace` is 0 while it stands still, else 1. It never goes back.
    """

    __slots__ = ("mode", "origin", "pace")

    def __init__(self, mode: ClockMode, now: int) -> None:
        self.mode: ClockMode = mode
        self.pace = 0 if mode == "manual" else 1
        self.origin = 0 if self.pace else now

    def __repr__(self) -> str:
        return f"<GroupClock {self.mode} pace={self.pace} origin={self.origin}>"

    def read(self, now: int) -> int:
        """Return the group's time at node time `now`."""
        return now * self.pace + self.origin

    def due_at(self, deadline: int, now: int) -> int | None:
        """Return the node time at which a deadline is reached, or None if the clock stands still before it.

        A clock that stands at or past the deadline reaches it `now`. For a running clock the result may be in the past.
        """
        if self.pace:
            return deadline - self.origin
        return now if deadline <= self.origin else None

    def set_mode(self, now: int, mode: str) -> None:
        """Change the mode, keeping the current reading. Raises ValueError for an unknown mode."""
        valid = mode_of(mode)
        reading = self.read(now)
        self.mode = valid
        self.pace = 0 if valid == "manual" else 1
        self.origin = reading - now * self.pace

    def move_to(self, now: int, reading: int) -> None:
        """Advance the clock to `reading`. Raises ValueError if that is in the past."""
        current = self.read(now)
        if reading < current:
            raise ValueError(f"the clock shows {current} ms and cannot go back to {reading} ms")
        self.origin += reading - current

    @property
    def is_plain(self) -> bool:
        """Whether the clock simply follows the node's time."""
        return self.mode == "real" and not self.origin


class GroupClocks(dict[str, GroupClock]):
    """The clocks of groups by group id, whichever node coordinates them. A new clock has the mode `group.clock`."""

    def __init__(self, mode: ClockMode) -> None:
        super().__init__()
        self.mode = mode
        self.auto: dict[str, None] = {}
        """Groups with an `auto` clock that may have something to wait for; the clock advance removes the others."""

    def of(self, group_id: str, now: int) -> GroupClock:
        """Return the clock of a group, which need not exist."""
        if group_id not in self:
            self[group_id] = GroupClock(self.mode, now)
        return self[group_id]


def mode_of(mode: str) -> ClockMode:
    """Return a mode by its name. Raises ValueError, naming the valid modes."""
    if mode not in MODES:
        raise UnknownWord(f"clock {mode!r}: must be {', '.join(MODES[:-1])} or {MODES[-1]}{did_you_mean(mode, MODES)}")
    return cast("ClockMode", mode)
