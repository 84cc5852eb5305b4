"""The overview of the groups in a trace: the state of each, and what happened in it, for pages with many groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koordinator.trace.events import is_error
from koordinator.trace.rebalances import PREPARING

from ..trace.vocabulary import CAUSES
from .texts import spaced

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Line


@dataclass
class GroupSummary:
    """A group as far as the trace shows it; `happened` counts the causes of rebalances and the errors."""

    id: str
    state: str = ""
    generation: int = 0
    members: set[str] = field(default_factory=set)
    """Instance ids of static members, member ids of dynamic ones."""
    is_whole: bool = True
    """Whether the trace has all members: it begins before they join."""
    happened: Counter[str] = field(default_factory=Counter)
    n_events: int = 0

    def add(self, line: Line) -> bool:
        """Take a line of the group; return whether the summary changed."""
        self.n_events += 1
        if line["kind"] == "state":
            self._changed(line)
        elif line["kind"] == "member":
            self._member(line)
        elif is_error(line):
            self.happened[line["error"]] += 1
        else:
            return self.n_events == 1
        return True

    def _changed(self, line: Line) -> None:
        if not self.state and line.get("cause") != "loaded":
            self.is_whole = line.get("state_from") == "Empty"
        self.state, self.generation = line.get("state_to", ""), line.get("generation", 0)
        if self.state == PREPARING:
            cause = line.get("cause", "")
            self.happened[CAUSES.get(cause) or spaced(cause)] += 1
        elif self.state in {"Empty", "Dead"}:
            self.members, self.is_whole = set(), True

    def _member(self, line: Line) -> None:
        name = line.get("instance_id") or line.get("member_id", "")
        if line.get("change") in {"added", "loaded"}:
            self.members.add(name)
        elif line.get("change") == "removed":
            self.members.discard(name)

    @property
    def row(self) -> list[Any]:
        """The row for the pages: id, state, generation, number of members or None, what happened and how often."""
        members = len(self.members) if self.is_whole else None
        return ["group", self.id, self.state, self.generation, members, dict(self.happened)]


class Overview:
    """The summaries of all groups in a trace."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupSummary] = {}
        self._changed: dict[str, GroupSummary] = {}

    def add(self, line: Line) -> None:
        """Take the next line of the trace."""
        group_id = line.get("group_id")
        if group_id is not None:
            summary = self.groups.setdefault(group_id, GroupSummary(group_id))
            if summary.add(line):
                self._changed[group_id] = summary

    def take(self) -> list[list[Any]]:
        """Return the rows of the groups that changed since the last call."""
        rows, self._changed = [summary.row for summary in self._changed.values()], {}
        return rows
