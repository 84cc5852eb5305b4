"""Verdicts on a playing to a broker."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, fields
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from exploring.actors import error_codes
from exploring.comparison import LATE, Difference, Names, compare
from exploring.core import Choices, play_to_core
from exploring.generator import is_steady

if TYPE_CHECKING:
    from exploring.releases import Release
    from exploring.steps import Outcome, Played, Sequence

SENT_LATE_MS = 60
"""A playing with a request sent later than this is not judged."""

ANSWERED_LATE_MS = 90
HICCUP_MS = 2_000
"""A response later than LATE_MS, but not than this, may be the machine's fault."""


class Verdict(Enum):
    """The result of a comparison."""

    SAME = "the same"
    DIFFERENT = "different"
    SLOW = "too slow to judge"
    LATE = "answered late"
    CLOSE = "timers too close to judge"


class Kind(NamedTuple):
    """A class of differences that probably have one cause."""

    api: str
    state: str
    core: str
    broker: str
    fields: str

    def __str__(self) -> str:
        about = f", {self.fields}" if self.fields else ""
        return f"{self.api} in {self.state}: core {self.core}, broker {self.broker}{about}"


@dataclass(frozen=True)
class Judgement:
    """The verdict, both sides, and the group's state at each request."""

    verdict: Verdict
    sequence: Sequence
    ours: Played
    theirs: Played
    states: tuple[str, ...]
    difference: Difference | None = None

    @property
    def kind(self) -> Kind:
        """The kind of the difference."""
        assert self.difference is not None
        number = self.difference.step
        one, two = self.ours.outcomes[number], self.theirs.outcomes[number]
        return Kind(
            self.sequence.steps[number].api, self.states[number], _code(one), _code(two), self._fields(one, two)
        )

    def _fields(self, one: Outcome, two: Outcome) -> str:
        if one.answer is None or two.answer is None:
            return ""
        mine, other = Names(self.ours).plain(one.answer), Names(self.theirs).plain(two.answer)
        names = [each.name for each in fields(one.answer) if mine[each.name] != other[each.name]]
        return ", ".join(names) or LATE


def _code(outcome: Outcome) -> str:
    if outcome.answer is None:
        return "closed" if outcome.closed else "-"
    return "/".join(map(str, error_codes(outcome.answer)))


def judge(sequence: Sequence, release: Release, theirs: Played) -> Judgement:
    """Compare a playing to a broker with the core, given the broker's choices."""
    choices = Choices.of(sequence, theirs)
    ours, states = play_to_core(sequence, release, choices)
    difference = compare(sequence, ours, theirs)
    verdict = Verdict.SAME
    if difference is not None:
        verdict = Verdict.DIFFERENT
        if any(
            two.sent_ms - step.at_ms > SENT_LATE_MS for step, two in zip(sequence.steps, theirs.outcomes, strict=True)
        ):
            verdict = Verdict.SLOW
        elif not is_steady(sequence, release, ours, choices):
            verdict = Verdict.CLOSE
        elif is_late(sequence, ours, theirs):
            verdict = Verdict.LATE
    return Judgement(verdict, sequence, ours, theirs, states, difference)


def is_late(sequence: Sequence, ours: Played, theirs: Played) -> bool:
    """Whether a response came later than the core's by enough to explain the difference."""
    sent = [*(outcome.sent_ms for outcome in theirs.outcomes), inf]
    planned = [step.at_ms for step in sequence.steps]
    for one, two in zip(ours.outcomes, theirs.outcomes, strict=True):
        if one.at_ms is None:
            continue
        came = sequence.end_ms if two.at_ms is None else two.at_ms
        if 0 < came - one.at_ms <= HICCUP_MS and (
            came - one.at_ms > ANSWERED_LATE_MS or came > sent[bisect_right(planned, one.at_ms)] or two.at_ms is None
        ):
            return True
    return False
