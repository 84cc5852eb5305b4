"""Records and tasks of the members of share groups and streams groups (KIP-932, KIP-1071), as rows for the pages.

* `delivery`: position of the acquisition, partition, first and last offset, lane or None, delivery count, position of
  the end or None, outcome; replaces the row of the same position, partition and first offset
* `task`: position of the assignment, task, type, lane or None, position of the end or None; replaces the row of the
  same position, task, type and lane
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from koordinator.trace.deliveries import ShareDeliveries, ShareDelivery
from koordinator.trace.tasks import TaskStays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.trace.exchanges import Line
    from koordinator.trace.tasks import TaskStay

    from .lane import Lane

HELD_MAX = 1_000
"""The newest deliveries and tasks of a group that a page shows."""


class HeldBars:
    """The records and tasks of the members of one group; positions are those of the trace's `seq`."""

    def __init__(self, group_id: str) -> None:
        self._deliveries, self._tasks = ShareDeliveries(group_id), TaskStays(group_id)
        self._ended: deque[ShareDelivery | TaskStay] = deque(maxlen=HELD_MAX)
        self._taken: set[ShareDelivery | TaskStay] = set()

    def add(self, line: Line) -> None:
        """Take a line of the group."""
        self._ended += self._deliveries.feed(line)
        self._ended += self._tasks.feed(line)

    def close(self, line: Line) -> None:
        """Take the end of a connection."""
        self._deliveries.close(line)

    def take(self, lane_of_member: Mapping[str, Lane]) -> list[list[Any]]:
        """Return the rows of the deliveries and stays that have begun or ended since the last call."""
        open_: list[ShareDelivery | TaskStay] = []
        open_ += self._deliveries.open
        open_ += self._tasks.open
        open_ = open_[-HELD_MAX:]
        ended, self._ended = self._ended, deque(maxlen=HELD_MAX)
        found = [*ended, *(each for each in open_ if each not in self._taken)]
        self._taken = {*open_}
        rows = []
        for each in found:
            lane = lane_of_member.get(each.member_id)
            index = None if lane is None else lane.index
            rows.append(_delivery(each, index) if isinstance(each, ShareDelivery) else _task(each, index))
        return rows


def _delivery(each: ShareDelivery, lane: int | None) -> list[Any]:
    place, offsets = f"{each.topic}-{each.partition}", (each.first_offset, each.last_offset)
    return ["delivery", each.acquired_seq, place, *offsets, lane, each.delivery_count, each.ended_seq, each.outcome]


def _task(each: TaskStay, lane: int | None) -> list[Any]:
    return ["task", each.given_seq, each.task_id, each.type, lane, each.ended_seq]
