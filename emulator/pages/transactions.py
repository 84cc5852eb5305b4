"""The transactions of a trace as bars, for the groups that they concern.

A transaction concerns a group if it commits offsets of the group, or writes to a topic that its members subscribe to.
Rows for the pages: `transaction`: position of the start, transactional id, position of the end or None, state, text;
replaces the row of the same start and id. `event` as in `group_lanes`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koordinator.trace.exchanges import Calls

from ..trace.vocabulary import TRANSACTION_CAUSES
from .texts import partition_ranges, summary

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Line

    from .group_lanes import GroupLanes

BARS_MAX = 500
"""The newest transactions that a page shows."""

STATES = {
    "Ongoing": "open",
    "PrepareCommit": "committing",
    "PrepareAbort": "aborting",
    "CompleteCommit": "committed",
    "CompleteAbort": "aborted",
}
"""The state of a bar, by the state of its transactional id."""

ABORTED_BY_OTHERS = frozenset({"timed_out", "fenced", "operator"})

LEVELS = {False: "plain", True: "bad"}
"""The level of an event, by whether it is bad."""


@dataclass(eq=False)
class Bar:
    """A transaction from its first partition to its last marker; positions are those of the trace's lines."""

    id: str
    start: int
    end: int | None = None
    state: str = "open"
    cause: str = ""
    topics: frozenset[str] = frozenset()
    partitions: str = ""
    offsets: dict[str, str] = field(default_factory=dict)
    """Offsets as text, by group."""
    events: list[list[Any]] = field(default_factory=list)
    """A row for each change."""

    def row(self, group_id: str) -> list[Any]:
        """Return the row for a group."""
        offsets = self.offsets.get(group_id)
        cause = f" ({TRANSACTION_CAUSES[self.cause]})" if self.cause in ABORTED_BY_OTHERS else ""
        parts = (f"{self.state}{cause}", self.partitions, f"offsets {offsets}" if offsets else "")
        return ["transaction", self.start, self.id, self.end, self.state, " · ".join(filter(None, parts))]


class TransactionBars:
    """The transactions of a trace, and how much of each every group has taken."""

    def __init__(self) -> None:
        self.bars: deque[Bar] = deque(maxlen=BARS_MAX)
        self._open: dict[str, Bar] = {}
        self._commits: Calls[Line] = Calls()
        self._taken: defaultdict[str, dict[Bar, int]] = defaultdict(dict)

    def add(self, at: int, line: Line) -> None:
        """Take a line of the trace: a change of a transactional id, or a TxnOffsetCommit."""
        body = line.get("body") or {}
        name = body.get("transactional_id", "")
        if line["kind"] == "transaction":
            self._changed(at, line, name, body)
        elif line.get("api") != "TxnOffsetCommit":
            return
        elif (request := self._commits.take(line, line)) is not None:
            self._committed(at, line, request)

    def _committed(self, at: int, response: Line, request: Line) -> None:
        """Add the offsets that are accepted; with transaction version 2 the request may have begun the transaction."""
        body = request.get("body") or {}
        name = body.get("transactional_id", "")
        bar = self._open.get(name)
        if bar is None:
            return
        refused = {(topic, number) for topic, number, _ in (response.get("body") or {}).get("refused", ())}
        offsets = [row for row in body.get("offsets", ()) if (row[0], row[1]) not in refused]
        if offsets:
            text = " ".join(f"{topic}-{number}@{offset}" for topic, number, offset in offsets)
            bar.offsets[response.get("group_id", "")] = text
        is_refused = bool(response.get("error"))
        bar.events.append(["event", at, name, summary(response if is_refused else request), LEVELS[is_refused]])

    def take(self, group: GroupLanes) -> list[list[Any]]:
        """Return the rows of the bars that concern a group and have changed since the last call for it."""
        taken, rows = self._taken[group.id], []
        topics = {topic for lane in group.lanes.values() for topic in lane.topics}
        for bar in self.bars:
            count = taken.get(bar, 0)
            if count < len(bar.events) and (group.id in bar.offsets or topics & bar.topics):
                rows += [bar.row(group.id), *bar.events[count:]]
                taken[bar] = len(bar.events)
        return rows

    def _changed(self, at: int, line: Line, name: str, body: Line) -> None:
        state = STATES.get(line.get("state_to", ""))
        if state is None:
            return
        bar = self._open.get(name)
        if bar is None:
            bar = self._open[name] = Bar(name, at)
            self.bars.append(bar)
        bar.state = state
        if state in {"committed", "aborted"}:
            bar.end = at
            del self._open[name]
        else:
            visible = [(topic, number) for topic, number in body.get("partitions", ()) if not topic.startswith("__")]
            bar.topics = frozenset(topic for topic, _ in visible)
            bar.partitions = partition_ranges(f"{topic}-{number}" for topic, number in visible)
            bar.cause = line.get("cause", "")
        is_bad = bar.cause in ABORTED_BY_OTHERS and bar.end is None
        bar.events.append(["event", at, name, summary(line), LEVELS[is_bad]])
