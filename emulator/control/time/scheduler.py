"""A scheduler of actions in the node's time or in a group's time: a ticker of `ClusterRuntime`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import mutable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output


@mutable
class ScheduledAction:
    """An action due at `due` ms: in the time of a group, or of the node if `group_id` is None."""

    due: int
    group_id: str | None
    do: Callable[[int], Iterable[Output]]


class Scheduler:
    """Performs actions at their deadlines; actions with the same deadline in the order of scheduling."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self._runtime = runtime
        self._entries: list[ScheduledAction] = []
        self._now = 0

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, now: int, ms: int, do: Callable[[int], Iterable[Output]], group_id: str | None = None) -> None:
        """Schedule an action in `ms` milliseconds, of the group's time if a group is given."""
        self._now = now
        self._entries.append(ScheduledAction(self.group_now(now, group_id) + ms, group_id, do))

    def group_now(self, now: int, group_id: str | None) -> int:
        """Return the time of a group; the node's time without a group."""
        clock = None if group_id is None else self._runtime.cluster.clocks.get(group_id)
        return now if clock is None else clock.read(now)

    def deadline(self) -> int | None:
        """Return the next deadline, in the node's time."""
        return min((due for each in self._entries if (due := self._due(each)) is not None), default=None)

    def tick(self, now: int) -> list[Output]:
        """Perform the actions that are due by now, in the order of their deadlines."""
        self._now = now
        outputs: list[Output] = []
        while True:
            due = [(at, number) for number, each in enumerate(self._entries) if (at := self._due(each)) is not None]
            if not due or min(due)[0] > now:
                return outputs
            outputs += self._entries.pop(min(due)[1]).do(now)

    def group_deadline(self, group_id: str) -> int | None:
        """Return the next deadline of a group's actions, in the group's time."""
        return min((each.due for each in self._entries if each.group_id == group_id), default=None)

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Shift a group's deadlines; otherwise they are computed from the clocks on demand."""
        self._now = now
        for action in self._entries:
            if action.group_id == group_id:
                action.due += shift_ms

    def _due(self, action: ScheduledAction) -> int | None:
        clock = None if action.group_id is None else self._runtime.cluster.clocks.get(action.group_id)
        return action.due if clock is None else clock.due_at(action.due, self._now)
