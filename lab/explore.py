"""Random schedules of a group's members, checked against invariants: a seed gives a schedule, and a schedule a verdict.

Members start, close, die, lose their network, commit; requests arrive twice; the topic grows, the coordinator moves.
The invariants:

* no partition has two owners that are members of the same generation, or dynamic members at all;
* a commit that succeeded is never lost;
* no commit and no heartbeat of a removed member or of an old generation succeeds, even if it arrives twice;
* the generation never goes back behind one that was written;
* in the end, after all faults, every member is stable, owns what the group says, and the partitions are balanced;
* the leader is a member whenever the group is stable, and the coordinator checks hold but for those in `MISJUDGING`.

A failing schedule is shrunk to one that still fails, and rendered as a test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from koordinator.emulator.core.effects import MemberChanged, StateChanged
from koordinator.emulator.trace.events import PuppetChanged, ResponseSent
from koordinator.emulator.verify.conformance import SERVER_CHECKS
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.observations import FAIL
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.offset_commit import OffsetCommitRequest

from .load import GROUP, TOPIC, Load
from .schemes.on_core import ONCE, CoreScheme, Members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.emulator.trace.events import TraceEvent
    from koordinator.wire.apis import Message

Step = tuple[str, str]
"""An action with its argument: a member, a number of partitions, or a time in seconds; "" without one."""

REPEATABLE = 100
"""The repeated request is one of those so far, by a number below this."""

NAMES = ("a", "b", "c", "d")
STEPS = 20
TIMES_S = ("0.05", "1", "4", "12", "50")

ACTIONS = {"start": 5, "close": 2, "kill": 2, "cut_off": 1, "reconnect": 1, "commit": 5, "pass_time": 8, "grow": 1}
ACTIONS |= {"stop_broker": 1, "start_broker": 1, "rebalance": 1, "repeat": 2}
"""The actions with their weights."""

MISJUDGING = {"S02", "S04", "S06"}
"""Checks that misjudge a member that dies while its JoinGroup is parked, or that returns because the coordinator moved
before its removal was written."""

END_S = "400"
"""The time after the last fault: longer than any timeout of the members."""

LOAD = Load(members=4, partitions=6, session_timeout_s=10, rebalance_timeout_s=60)

KINDS = (("range", False), ("range", True), ("cooperative-sticky", False), ("cooperative-sticky", True))
"""Assignors, each with dynamic and with static members."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A schedule that violates invariants, shrunk."""

    seed: int
    steps: tuple[Step, ...]
    violations: tuple[str, ...]

    def as_test(self) -> str:
        """Return a test that repeats the schedule."""
        steps = "".join(f"        {step!r},\n" for step in self.steps)
        found = "".join(f"    # {each}\n" for each in self.violations)
        return (
            "from koordinator.lab.explore import violations_of\n\n\n"
            f"def test_seed_{self.seed}() -> None:\n{found}    steps = [\n{steps}    ]\n"
            f"    assert violations_of({self.seed}, steps) == []\n"
        )


def steps_of(seed: int) -> list[Step]:
    """Return the schedule of a seed."""
    random = Random(seed)  # noqa: S311 - seeded
    steps: list[Step] = []
    for action in random.choices(tuple(ACTIONS), tuple(ACTIONS.values()), k=STEPS):
        match action:
            case "pass_time":
                steps.append((action, random.choice(TIMES_S)))
            case "grow":
                steps.append((action, "1"))
            case "repeat":
                steps.append((action, str(random.randrange(REPEATABLE))))
            case "stop_broker" | "start_broker" | "rebalance":
                steps.append((action, ""))
            case _:
                steps.append((action, random.choice(NAMES)))
    return steps


def explore(seed: int) -> Failure | None:
    """Play the schedule of a seed; return its shrunk failure, or None."""
    steps = steps_of(seed)
    if not violations_of(seed, steps):
        return None
    steps = shrunk(seed, steps)
    return Failure(seed, tuple(steps), tuple(violations_of(seed, steps)))


def shrunk(seed: int, steps: list[Step]) -> list[Step]:
    """Return a part of a failing schedule that fails, and no longer does without any one of its steps."""
    at = 0
    while at < len(steps):
        shorter = steps[:at] + steps[at + 1 :]
        if violations_of(seed, shorter):
            steps, at = shorter, 0
        else:
            at += 1
    return steps


def violations_of(seed: int, steps: Sequence[Step]) -> list[str]:
    """Play a schedule, and return the violated invariants. Impossible steps are skipped."""
    protocol, is_static = KINDS[seed % len(KINDS)]
    load = replace(LOAD, seed=seed)
    with CoreScheme(load, Members((protocol,), is_static)) as scheme:
        play = _Play(scheme)
        try:
            for step in steps:
                play.perform(*step)
            play.end()
        except (AssertionError, LookupError) as error:
            # the core asserts its own state
            return [f"{type(error).__name__}: {error}"]
        return play.violations


class _Play:
    """A schedule in play, and what it has violated."""

    def __init__(self, scheme: CoreScheme) -> None:
        self.violations: list[str] = []
        self._scheme = scheme
        self._up: set[str] = set()
        self._cut_off: set[str] = set()
        self._is_broker_down = self._may_miss_growth = False
        self._generation = self._written = -1
        self._removed: set[str] = set()
        self._holds: dict[str, PuppetChanged] = {}
        self._committed: dict[int, int] = {}
        self._offset = 0
        self._sent: list[tuple[Message, int]] = []
        scheme.observe(self._observe)

    def perform(self, action: str, argument: str) -> None:
        """Perform a step, if it is possible now."""
        scheme = self._scheme
        match action:
            case "start" if argument not in self._up:
                self._up.add(argument)
                scheme.start(argument)
            case "close" | "kill" if argument in self._up - self._cut_off:
                self._up.discard(argument)
                (scheme.close if action == "close" else scheme.kill)(argument)
            case "cut_off" if argument in self._up - self._cut_off:
                self._cut_off.add(argument)
                scheme.cut_off(argument)
            case "reconnect" if argument in self._cut_off:
                self._cut_off.discard(argument)
                scheme.reconnect(argument)
            case "commit" if argument in self._up and scheme.group.puppets[argument].state == "stable":
                self._commit(argument)
            case "pass_time":
                scheme.pass_time(float(argument))
                self._check_leader()
            case "grow":
                scheme.grow(int(argument))
                self._may_miss_growth = scheme.is_static
            case "stop_broker" if not self._is_broker_down:
                self._is_broker_down = True
                scheme.stop_broker()
            case "start_broker" if self._is_broker_down:
                self._is_broker_down = False
                scheme.start_broker()
            case "repeat" if self._sent:
                scheme.send(*self._sent[int(argument) % len(self._sent)])
            case "rebalance" if scheme.group.state in ("Stable", "CompletingRebalance"):
                scheme.group.rebalance()
            case _:
                pass

    def end(self) -> None:
        """End all faults, let time pass, and compare the views of the members with the group's."""
        for name in sorted(self._cut_off):
            self.perform("reconnect", name)
        self.perform("start_broker", "")
        self.perform("pass_time", END_S)
        group, owned = self._scheme.group.snapshot(), []
        for name in sorted(self._up):
            puppet = self._scheme.group.puppets[name].describe()
            if puppet.state != "stable":
                self.violations.append(f"{name} ends {puppet.state}, and waits for {puppet.waits_for}")
            member = next((each for each in group.members if each.member_id == puppet.member_id), None)
            if member is None:
                self.violations.append(f"{name} ends as no member of the group")
            elif {topic: list(held) for topic, held in member.assignment.items()} != puppet.assignment:
                self.violations.append(f"{name} ends with {puppet.assignment}, the group with {member.assignment}")
            owned.append(len(puppet.assignment.get(TOPIC, [])))
        if len(group.members) != len(self._up):
            self.violations.append(f"the group ends with {len(group.members)} members, {len(self._up)} run")
        # a static leader does not notice partitions that were added while it was down (KIP-814)
        expected = sum(owned) if self._may_miss_growth else self._scheme.partitions
        if self._up and (sum(owned) != expected or max(owned) - min(owned) > 1 + self._may_miss_growth):
            self.violations.append(f"the members end with {owned} of {self._scheme.partitions} partitions")
        offsets = self._scheme.group.offsets
        for partition, offset in self._committed.items():
            if offsets.get((TOPIC, partition), -1) < offset:
                self.violations.append(f"the commit of {offset} in partition {partition} is lost")
        trace = GroupTrace(self._scheme.group.events(), GROUP)
        for check in sorted(SERVER_CHECKS.keys() - MISJUDGING):
            observations = SERVER_CHECKS[check][1](trace)
            if observations.status == FAIL:
                self.violations.append(f"{check}: {observations.message}")

    def _check_leader(self) -> None:
        group = self._scheme.group.snapshot()
        if group.state == "Stable" and group.leader not in {member.member_id for member in group.members}:
            self.violations.append(f"generation {group.generation} is led by {group.leader}, which is not in it")

    def _commit(self, name: str) -> None:
        held = self._scheme.group.puppets[name].assignment.get(TOPIC)
        if held:
            self._offset += 1
            self._scheme.group.puppets[name].commit({(TOPIC, held[0]): self._offset})

    def _observe(self, event: TraceEvent) -> None:
        match event:
            case StateChanged():
                if event.generation < self._written:
                    self.violations.append(f"generation {event.generation} follows {self._written}")
                self._generation = event.generation
                if event.after in ("Stable", "Empty"):
                    self._written = event.generation
            case MemberChanged(change="removed" | "replaced"):
                self._removed.add(event.member_id)
            case MemberChanged(change="loaded"):
                # it was removed after the last write of the group
                self._removed.discard(event.member_id)
            case PuppetChanged():
                self._check_owners(event)
            case ResponseSent() if isinstance(event.received.request, OffsetCommitRequest):
                request = event.received.request
                self._check_sender(event, request.member_id, request.generation_id_or_member_epoch)
                if event.error is Error.NONE:
                    rows = (row for topic in request.topics for row in topic.partitions)
                    self._committed |= {row.partition_index: row.committed_offset for row in rows}
            case ResponseSent() if isinstance(event.received.request, HeartbeatRequest):
                self._check_sender(event, event.received.request.member_id, event.received.request.generation_id)
            case _:
                pass

    def _check_owners(self, change: PuppetChanged) -> None:
        self._holds[change.name] = change
        mine = {number for _, held in change.holds for number in held}
        for other in self._holds.values():
            both = mine & {number for _, held in other.holds for number in held}
            is_member = other.member_id not in self._removed and change.member_id not in self._removed
            if both and is_member and other is not change:
                is_dynamic = change.instance_id is None and other.instance_id is None
                if is_dynamic or change.generation == other.generation:
                    self.violations.append(f"{change.name} and {other.name} both own partitions {sorted(both)}")

    def _check_sender(self, event: ResponseSent, member_id: str, generation: int) -> None:
        call = event.received.call
        if call.client_id != ONCE:
            self._sent.append((event.received.request, call.api_version))
        if event.error is Error.NONE and (member_id in self._removed or generation != self._generation):
            name = type(event.received.request).__name__
            self.violations.append(f"{name} of {member_id}, generation {generation}, succeeds in {self._generation}")
