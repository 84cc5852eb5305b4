"""The lanes of every group in a trace (`group_lanes`), and the pairs of requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.trace.exchanges import Calls

from .group_lanes import GroupLanes
from .texts import is_test_action
from .transactions import TransactionBars

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.trace.exchanges import Line


class Lanes:
    """The lanes of every group in a trace, or of one group."""

    def __init__(self, only: str | None = None) -> None:
        self.groups: dict[str, GroupLanes] = {}
        self.transactions = TransactionBars()
        self._only = only

    def take(self, group: GroupLanes) -> list[list[Any]]:
        """Return the rows of the changes of a group since the last call."""
        return [*group.take(), *self.transactions.take(group)]

    def add(self, at: int, line: Line) -> None:
        """Take the next line of the trace, other than its header."""
        group_id = line.get("group_id")
        self.transactions.add(at, line)
        if group_id is not None:
            if group_id == (self._only or group_id):
                self.groups.setdefault(group_id, GroupLanes(group_id)).add(at, line)
        elif is_test_action(line) or (line["kind"] == "conn" and line.get("change") == "closed"):
            for group in self.groups.values():
                group.note(at, line)


def lanes_of(lines: Iterable[Line]) -> dict[str, GroupLanes]:
    """Return the lanes of every group in the lines of a trace (without its header), by group id.

    Positions are indexes into the lines.
    """
    lanes = Lanes()
    for at, line in enumerate(lines):
        lanes.add(at, line)
    return lanes.groups


def responses_of(lines: Sequence[Line]) -> dict[int, int]:
    """Return the positions of responses by those of their requests."""
    calls: Calls[int] = Calls()
    asked = {at: calls.take(line, at) for at, line in enumerate(lines)}
    return {request: at for at, request in asked.items() if request is not None}
