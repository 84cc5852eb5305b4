"""What is to be done later, in the node's time or in a group's: a ticker of the nodes (`brokers.Ticker`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output


@dataclass(slots=True, eq=False)
class ScheduledAction:
    """Something to be done at `due`: in the time of a group, or of the node if there is none."""

    due: int
    group_id: str | None
    do: Callable[[int], Iterable[Output]]


class Scheduler:
    """Does things when their time has come; of two that are due at once the one first that was entered first."""

    def __init__(self, brokers: ClusterRuntime) -> None:
        self._brokers = brokers
        self._entries: list[ScheduledAction] = []
        self._now = 0

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, now: int, ms: int, do: Callable[[int], Iterable[Output]], group_id: str | None = None) -> None:
        """Do something in so many milliseconds, of the group's time if one is named."""
        self._now = now
        self._entries.append(ScheduledAction(self.group_now(now, group_id) + ms, group_id, do))

    def group_now(self, now: int, group_id: str | None) -> int:
        """The time of a group; the node's, if there is none."""
        clock = None if group_id is None else self._brokers.cluster.group_clocks.get(group_id)
        return now if clock is None else clock.read(now)

    def deadline(self) -> int | None:
        """When the next thing is to be done."""
        return min((due for each in self._entries if (due := self._due(each)) is not None), default=None)

    def tick(self, now: int) -> list[Output]:
        """Do what is to be done by now, in the order in which it is due."""
        self._now = now
        outputs: list[Output] = []
        while True:
            due = [(at, number) for number, each in enumerate(self._entries) if (at := self._due(each)) is not None]
            if not due or min(due)[0] > now:
                return outputs
            outputs += self._entries.pop(min(due)[1]).do(now)

    def group_deadline(self, group_id: str) -> int | None:
        """When the next thing is to be done that is due in the time of a group, in that time."""
        return min((each.due for each in self._entries if each.group_id == group_id), default=None)

    def clock_changed(self, now: int, group_id: str) -> None:
        """The clock of a group was moved: what is due by it is looked up when it is asked for."""

    def _due(self, later: ScheduledAction) -> int | None:
        clock = None if later.group_id is None else self._brokers.cluster.group_clocks.get(later.group_id)
        return later.due if clock is None else clock.due_at(later.due, self._now)
