"""Play sequences to the core: instantly, as late as a busy broker, or with a broker's choices.

Where Kafka takes "any" member as leader after the old one left or did not rejoin, it takes the first of a hash table of
random ids, which cannot be predicted. A comparison therefore lets the core choose the broker's leader (`Choices`) among
those that its own rules allow: it changes the order of the members, not the rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from scenes.play import START, Play

from exploring.releases import settings_here
from exploring.steps import GROUP, TOPICS, Id, Outcome, Played, asked
from koordinator.emulator.core.groups import group as group_module
from koordinator.emulator.core.timers import OffsetExpiryCheck, Timers
from koordinator.wire.errors import Error
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from scenes.play import Exchange

    from exploring.releases import Release
    from exploring.steps import Sequence, Setup, Step
    from koordinator.emulator.core.groups.classic.group import ClassicGroup
    from koordinator.emulator.core.timers import TimerKey

DEAD = "Dead"
"""The state of an absent group in DescribeGroups."""


@dataclass(frozen=True)
class Choices:
    """The choices of a broker where it was free, by generation.

    Attributes:
        leaders: the step whose response gave the leader its id.
        joined: the instances that joined, and for dynamic members the steps whose responses gave them their ids.
    """

    leaders: Mapping[int, int] = field(default_factory=dict)
    joined: Mapping[int, set[int | str]] = field(default_factory=dict)

    @classmethod
    def of(cls, sequence: Sequence, played: Played) -> Choices:
        """Return the choices visible in the JoinGroup responses."""
        named = ids_of(played.outcomes)
        leaders: dict[int, int] = {}
        joined: dict[int, set[int | str]] = {}
        for step, outcome in zip(sequence.steps, played.outcomes, strict=True):
            answer, request = outcome.answer, step.request
            if not isinstance(answer, JoinGroupResponse) or answer.error_code != Error.NONE:
                continue
            assert isinstance(request, JoinGroupRequest)
            who = request.group_instance_id or named[answer.member_id].step
            joined.setdefault(answer.generation_id, set()).add(who)
            if answer.leader in named:
                leaders.setdefault(answer.generation_id, named[answer.leader].step)
        return cls(leaders, joined)


class Core:
    """A core with one group, and the requests it received.

    Args:
        setup: its settings.
        release: the release it emulates.
        choices: choices where Kafka is free; without one the core chooses itself.
        late: the lateness of timers, drawn for each; None makes them exact.
    """

    def __init__(
        self, setup: Setup, release: Release, choices: Choices | None = None, late: partial[int] | None = None
    ) -> None:
        settings = {name.replace(".", "_"): value for name, value in (setup.settings | settings_here(release)).items()}
        self.play = Play(**settings)
        self.outcomes: list[Outcome] = []
        self.states: list[str] = []
        self._choices = choices or Choices()
        self._exchanges: dict[int, Exchange[Any]] = {}
        self._timers = partial(LateTimers, self._later) if late is not None else Timers
        self._late = late
        self._topic_ids = {name: self.play.cluster.topics[name].topic_id for name in TOPICS}

    @property
    def group(self) -> ClassicGroup | None:
        """The group, or None."""
        return self.play.coordinator.groups.get(GROUP)

    @property
    def now(self) -> int:
        """Milliseconds since the beginning."""
        return self.play.now - START

    @property
    def played(self) -> Played:
        """Return the outcomes of the steps so far."""
        return Played(tuple(self.outcomes), GROUP, self._topic_ids)

    def deadlines(self) -> list[int]:
        """Return the deadlines of the group's timers, except the check for expired offsets."""
        return [at - START for at, _ in self.timers()]

    def timers(self) -> list[tuple[int, TimerKey]]:
        """Return the same deadlines with their keys, in the core's time."""
        group = self.group
        pending = group.timers.pending() if group is not None else ()
        return [(at, key) for at, key in pending if not isinstance(key, OffsetExpiryCheck)]

    def ask(self, step: Step) -> Outcome:
        """Send the request of a step now."""
        self._lead()
        number = len(self.outcomes)
        self.states.append(self.group.state.value if self.group is not None else DEAD)
        request = asked(step, self.outcomes, GROUP, self._topic_ids)
        self.outcomes.append(Outcome(self.now))
        with patch.object(group_module, "Timers", self._timers):
            self._exchanges[number] = self.play.send(request, step.version, step.client_id)
        self._collect()
        self.run(self.now)
        return self.outcomes[number]

    def run(self, until_ms: int) -> None:
        """Let time pass, timer by timer."""
        while (due := self.play.coordinator.deadline()) is not None and due - START <= until_ms:
            self._lead()
            self.play.wait(max(due - self.play.now, 0))
            self._collect()
        self.play.wait(max(until_ms - self.now, 0))

    def _later(self, deadline: int) -> int:
        assert self._late is not None
        return deadline + (self._late() if deadline > self.play.now else 0)

    def _collect(self) -> None:
        for number in [number for number, exchange in self._exchanges.items() if exchange.responses]:
            answer = self._exchanges.pop(number).response
            self.outcomes[number] = Outcome(self.outcomes[number].sent_ms, answer, self.now)

    def _lead(self) -> None:
        """Put the broker's leader of the next generation first, where the core takes the first of several.

        It may be absent when the old leader goes: the broker then chose a member that did not join, otherwise that one
        would lead.
        """
        group = self.group
        if group is None:
            return
        following = group.generation + 1
        number = self._choices.leaders.get(following)
        if number is None:
            return
        # its own response may depend on the choice; the parked request identifies it before
        call = self._exchanges[number].call if number in self._exchanges else None
        leader = self.outcomes[number].member_id if number < len(self.outcomes) else None
        joined = self._choices.joined[following]
        ids = {outcome.member_id for step, outcome in enumerate(self.outcomes) if step in joined}
        members = sorted(
            group.members.values(),
            key=lambda member: (
                member.id != leader and (call is None or member.parked_join is not call),
                member.id in ids or member.instance_id in joined,
            ),
        )
        group.members.clear()
        group.members.update((member.id, member) for member in members)


class LateTimers(Timers["TimerKey"]):
    """Timers that fire late by a random amount; zero delays stay exact."""

    def __init__(self, late: Callable[[int], int]) -> None:
        super().__init__()
        self._late = late

    def set(self, key: TimerKey, deadline: int) -> None:
        """Set the timer some time after the deadline."""
        super().set(key, self._late(deadline))


def play_to_core(
    sequence: Sequence,
    release: Release,
    choices: Choices | None = None,
    chance: random.Random | None = None,
    late_max_ms: int = 0,
) -> tuple[Played, tuple[str, ...]]:
    """Return the outcome of each step, and the group's state before each.

    With `chance`, requests arrive and timers fire up to `late_max_ms` late.
    """
    late = partial(chance.randint, 0, late_max_ms) if chance is not None else None
    core = Core(sequence.setup, release, choices, late)
    for step in sequence.steps:
        core.run(max(step.at_ms + (late() if late is not None else 0), core.now))
        core.ask(step)
    core.run(sequence.end_ms)
    return core.played, tuple(core.states)


def ids_of(outcomes: Iterable[Outcome]) -> dict[str, Id]:
    """Return the first step that names each member id."""
    found: dict[str, Id] = {}
    for number, outcome in enumerate(outcomes):
        if outcome.member_id is not None:
            found.setdefault(outcome.member_id, Id(number))
    return found
