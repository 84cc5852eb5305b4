"""Comparison of two sides' answers to the same sequence.

Ids are named after the step whose response introduces them, groups and topic ids are unified, and rows without a
defined order are sorted. Everything else must be equal, and arrive at the same time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from exploring.core import ids_of
from exploring.steps import GROUP
from koordinator.wire.messages.delete_groups import DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import DescribedGroup
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.list_groups import ListGroupsResponse
from koordinator.wire.messages.offset_commit import OffsetCommitResponse, OffsetCommitResponseTopic
from koordinator.wire.messages.offset_delete import OffsetDeleteResponse, OffsetDeleteResponseTopic
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from exploring.steps import Outcome, Played, Sequence

EARLY_MS = 40
"""A broker's timer never fires early; this allows for the difference of the two clocks."""

LATE_MS = 300
"""A later response is a difference, or the machine's fault."""

MEMBER_ID = re.compile(r"(.*)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.DOTALL)

UNORDERED: Mapping[type, tuple[str, ...]] = {
    JoinGroupResponse: ("members",),
    DescribedGroup: ("members",),
    DeleteGroupsResponse: ("results",),
    ListGroupsResponse: ("groups",),
    OffsetCommitResponse: ("topics",),
    OffsetCommitResponseTopic: ("partitions",),
    OffsetDeleteResponse: ("topics",),
    OffsetDeleteResponseTopic: ("partitions",),
    OffsetFetchResponse: ("topics",),
    OffsetFetchResponseGroup: ("topics",),
    OffsetFetchResponseTopic: ("partitions",),
    OffsetFetchResponseTopics: ("partitions",),
}
"""Rows in hash order, or with refused entries first."""


@dataclass(frozen=True)
class Difference:
    """The first disagreement, at `at_ms`. `ours` and `theirs` are the two answers as text."""

    step: int
    at_ms: int
    what: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.what}\n    core:   {self.ours}\n    broker: {self.theirs}"


class Names:
    """The names of ids in one playing."""

    def __init__(self, played: Played) -> None:
        self._ids = {member_id: f"id of step {each.step}" for member_id, each in ids_of(played.outcomes).items()}
        self._group = played.group
        self._topics = {topic_id: f"id of {name}" for name, topic_id in played.topic_ids.items()}

    def plain(self, value: object) -> Any:
        """Convert a message to nested dicts and lists, equal on both sides if they agree."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, UUID):
            return self._topics.get(value, str(value))
        if isinstance(value, tuple):
            return [self.plain(each) for each in value]
        if is_dataclass(value):
            rows = {each.name: self.plain(getattr(value, each.name)) for each in fields(value)}
            if isinstance(value, ListGroupsResponse):
                # other groups belong to other sequences
                rows["groups"] = [row for row in rows["groups"] if row["group_id"] == GROUP]
            for name in UNORDERED.get(type(value), ()):
                rows[name] = sorted(rows[name], key=repr)
            return rows
        return value

    def _text(self, value: str) -> str:
        if value == self._group:
            return GROUP
        if value in self._ids:
            return self._ids[value]
        made = MEMBER_ID.fullmatch(value)
        if made is not None:
            return f"an id of {made[1]}"
        return value.replace(self._group, GROUP) if self._group != GROUP else value


def rendered(outcome: Outcome, names: Names) -> str:
    """Render the answer of one side."""
    if outcome.closed:
        return "closed the connection"
    if outcome.answer is None:
        return "no answer"
    return f"{type(outcome.answer).__name__} {names.plain(outcome.answer)}"


def compare(sequence: Sequence, ours: Played, theirs: Played, late_ms: int | None = LATE_MS) -> Difference | None:
    """Return the first difference in time, or None. `late_ms=None` ignores times."""
    mine, other = Names(ours), Names(theirs)
    found: list[Difference] = []
    for number, (one, two) in enumerate(zip(ours.outcomes, theirs.outcomes, strict=True)):
        times = [each.at_ms for each in (one, two) if each.at_ms is not None]
        at_ms = round(min(times, default=sequence.end_ms))
        words = rendered(one, mine), rendered(two, other)
        if words[0] != words[1]:
            found.append(Difference(number, at_ms, label(sequence, number), *words))
        elif late_ms is not None and times and not -EARLY_MS <= times[1] - times[0] <= late_ms:
            when = f"after {times[0]:.0f} ms", f"after {times[1]:.0f} ms"
            found.append(Difference(number, at_ms, f"{label(sequence, number)}: {LATE}", *when))
    return min(found, key=lambda each: (each.at_ms, each.step), default=None)


LATE = "when it was answered"


def label(sequence: Sequence, number: int) -> str:
    """Return a short label of a step."""
    step = sequence.steps[number]
    return f"{step.api} v{step.version}"
