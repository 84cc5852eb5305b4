"""The rounds of an exploration: play, judge, replay unsteady sequences, and shrink differences.

A sequence whose playing was too slow is played again; one with timers too close together is generated again. A
difference is played twice more: if the broker then agrees with the core, it disagrees with itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from exploring.coverage import Seen, seen_in
from exploring.generator import write
from exploring.known_differences import EXPLANATIONS
from exploring.shrinking import shrunk
from exploring.verdicts import Judgement, Kind, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exploring.releases import Release
    from exploring.steps import Played, Sequence, Setup

Plays = Callable[[list["Sequence"]], list["Played"]]
"""Plays sequences to a target."""

PLAYINGS_MAX = 6
"""The most playings of one sequence to reach a verdict."""

PLAYINGS_TO_SHRINK = 2
REWRITTEN_MAX = 5
"""The most times one sequence is generated again."""

UNCLEAR = {Verdict.SLOW, Verdict.LATE}
REPEATS = 6
"""How often a difference is played again. The old coordinator chooses a leader by the hashes of random member ids."""

WARM_UP = 20
SOON_MS = 400
SHRUNK_MAX = 12


@dataclass
class Findings:
    """Results of an exploration.

    Attributes:
        judged: sequences with a verdict.
        requests: the number of their requests.
        seen: coverage of their answers.
        undecided: sequences whose every playing was too slow.
        playings: playings of all kinds.
        unsteady: the broker contradicted itself.
        explained: differences by Kafka issue.
        differences: other differences, by kind.
        shortest: one shrunk example of each kind.
    """

    judged: int = 0
    requests: int = 0
    seen: Seen = field(default_factory=Counter)
    undecided: list[Judgement] = field(default_factory=list)
    playings: Counter[Verdict] = field(default_factory=Counter)
    unsteady: list[Judgement] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    differences: dict[Kind, list[Judgement]] = field(default_factory=lambda: defaultdict(list))
    shortest: list[Judgement] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Add other results."""
        self.judged += other.judged
        self.requests += other.requests
        self.seen.update(other.seen)
        self.undecided += other.undecided
        self.playings.update(other.playings)
        self.unsteady += other.unsteady
        self.explained.update(other.explained)
        for kind, judgements in other.differences.items():
            self.differences[kind] += judgements
        self.shortest += other.shortest


class Exploration:
    """The exploration of one release in one setup.

    Args:
        release: the release that the core emulates.
        setup: of the broker and of the core.
        plays: to the broker.
        say: receives progress messages.
    """

    def __init__(self, release: Release, setup: Setup, plays: Plays, say: Callable[[str], None]) -> None:
        self._release = release
        self._setup = setup
        self._plays = plays
        self._say = say
        self.findings = Findings()

    def explore(self, seeds: Iterable[str]) -> Findings:
        """Play one sequence per seed."""
        waiting = {seed: write(seed, self._setup, self._release) for seed in seeds}
        # a broker that has just started is slow
        self._plays(list(waiting.values())[:WARM_UP])
        suspects: list[Judgement] = []
        for number in range(REWRITTEN_MAX):
            judgements = dict(zip(waiting, self._judge(list(waiting.values())), strict=True))
            verdicts = Counter(each.verdict.value for each in judgements.values())
            self._say(", ".join(f"{count} {name}" for name, count in verdicts.items()))
            for judgement in judgements.values():
                if judgement.verdict is Verdict.SAME:
                    self._count(judgement)
            suspects += [each for each in judgements.values() if each.verdict is Verdict.DIFFERENT]
            self.findings.undecided += [each for each in judgements.values() if each.verdict in UNCLEAR]
            close = [seed for seed, each in judgements.items() if each.verdict is Verdict.CLOSE]
            if not close:
                break
            waiting = {seed: write(f"{seed}/{number}", self._setup, self._release) for seed in close}
        self._look_into(suspects)
        return self.findings

    def _look_into(self, suspects: list[Judgement]) -> None:
        """Replay differences; explain or shrink those that persist."""
        for _ in range(REPEATS):
            again = self._judge([each.sequence for each in suspects])
            for before, after in zip(suspects, again, strict=True):
                if after.verdict is Verdict.SAME:
                    self._count(after)
                    self.findings.unsteady.append(before)
            suspects = [each for each, after in zip(suspects, again, strict=True) if after.verdict is not Verdict.SAME]
        for each in suspects:
            self._count(each)
            issue = next((known.issue for known in EXPLANATIONS if known.explains(each, self._release)), None)
            if issue is not None:
                self.findings.explained[issue] += 1
            else:
                self.findings.differences[each.kind].append(each)
        for kind, judgements in list(self.findings.differences.items())[:SHRUNK_MAX]:
            self.findings.shortest.append(self._shortest(judgements[0], kind))

    def _shortest(self, judgement: Judgement, kind: Kind) -> Judgement:
        """Return the shortest sequence with the same kind of difference."""
        self._say(f"making short: {kind}")
        best = judgement

        def shows(sequences: list[Sequence]) -> list[bool]:
            nonlocal best
            shown = []
            for each in self._judge(sequences, PLAYINGS_TO_SHRINK):
                shown.append(each.verdict is Verdict.DIFFERENT and each.kind == kind)
                if shown[-1] and _length(each) < _length(best):
                    best = each
            return shown

        assert judgement.difference is not None
        shrunk(judgement.sequence, judgement.difference.at_ms + SOON_MS, shows)
        return best

    def _judge(self, sequences: list[Sequence], playings: int = PLAYINGS_MAX) -> list[Judgement]:
        """Judge sequences; replay those that were too slow."""
        tries: list[list[Judgement]] = [[] for _ in sequences]
        for _ in range(playings):
            again = [number for number, done in enumerate(tries) if not done or done[-1].verdict in UNCLEAR]
            played = self._plays([sequences[number] for number in again]) if again else []
            for number, theirs in zip(again, played, strict=True):
                tries[number].append(judge(sequences[number], self._release, theirs))
                self.findings.playings[tries[number][-1].verdict] += 1
        return [_agreed(done) for done in tries]

    def _count(self, judgement: Judgement) -> None:
        self.findings.judged += 1
        self.findings.requests += len(judgement.sequence.steps)
        self.findings.seen.update(seen_in(judgement.sequence, judgement.theirs, judgement.states))


def _agreed(tries: list[Judgement]) -> Judgement:
    """Combine several playings: a response that is late in the same way every time is a difference."""
    last = tries[-1]
    late = all(each.verdict is Verdict.LATE for each in tries)
    if len(tries) > 1 and late and len({each.kind for each in tries}) == 1:
        return replace(last, verdict=Verdict.DIFFERENT)
    return last


def _length(judgement: Judgement) -> tuple[int, int]:
    return len(judgement.sequence.steps), judgement.sequence.end_ms
