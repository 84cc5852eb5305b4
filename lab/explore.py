"""Random schedules of a group's members, checked against invariants: a seed gives a schedule, and a schedule a verdict.

Members start, close, die, lose their network, commit; requests arrive twice; the topic grows, the coordinator moves.
The invariants are the `PROPERTIES`; in the end there are two limits of static members in Kafka (see `_Play.end`).
A failing schedule is shrunk to one that still fails, and rendered as a test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from koordinator.emulator.broker.failures import BrokerBug
from koordinator.emulator.core.groups.facts import MemberChanged, StateChanged
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
    from collections.abc import Collection, Sequence

    from koordinator.emulator.trace.events import TraceEvent
    from koordinator.wire.apis import Message

Step = tuple[str, str]
"""An action with its argument: a member, a number of partitions, or a time in seconds; "" without one."""

PROPERTIES = {
    "owners": "no partition has two owners that are members of the same generation, or dynamic members at all",
    "commits": "a commit that succeeded is never lost",
    "senders": "no commit or heartbeat of a removed member or an old generation succeeds, even if it arrives twice",
    "generations": "the generation never goes back behind one that was written",
    "end": "after all faults every member is stable and owns what the group says, and the partitions are balanced",
    "leader": "the leader is a member whenever the group is stable",
    "checks": "the checks of the coordinator hold (`emulator.verify`)",
}
"""The invariants by name. That the core's own assertions hold is always one."""

ALL = frozenset(PROPERTIES)

REPEATABLE = 100
"""The repeated request is one of those so far, by a number below this."""

NAMES = ("a", "b", "c", "d")
STEPS = 20
TIMES_S = ("0.05", "1", "4", "12", "50")

ACTIONS = {"start": 5, "close": 2, "kill": 2, "cut_off": 1, "reconnect": 1, "commit": 5, "pass_time": 8, "grow": 1}
ACTIONS |= {"stop_broker": 1, "start_broker": 1, "rebalance": 1, "repeat": 2}
"""The actions with their weights."""

END_S = "100"
"""The time after the last fault: longer than the timeouts of a session and of two rebalances together."""

LOAD = Load(members=4, partitions=6, session_timeout_s=10, rebalance_timeout_s=20)

STATIC_COOPERATIVE = Members(("cooperative-sticky",), is_static=True)

KINDS = (
    Members(("range",)),
    Members(("range",), is_static=True),
    Members(("cooperative-sticky",)),
    STATIC_COOPERATIVE,
    Members(("uniform",), group_protocol="consumer"),
)
"""The members of a schedule, by its seed."""


@dataclass(frozen=True, slots=True)
class FailedSeed:
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


def explore(seed: int, properties: Collection[str] = ALL) -> FailedSeed | None:
    """Play the schedule of a seed; return its shrunk failure, or None."""
    steps = steps_of(seed)
    if not violations_of(seed, steps, properties):
        return None
    steps = shrunk(seed, steps, properties)
    return FailedSeed(seed, tuple(steps), tuple(violations_of(seed, steps, properties)))


def shrunk(seed: int, steps: list[Step], properties: Collection[str] = ALL) -> list[Step]:
    """Return a part of a failing schedule that fails, and no longer does without any one of its steps."""
    at = 0
    while at < len(steps):
        shorter = steps[:at] + steps[at + 1 :]
        if violations_of(seed, shorter, properties):
            steps, at = shorter, 0
        else:
            at += 1
    return steps


def violations_of(seed: int, steps: Sequence[Step], properties: Collection[str] = ALL) -> list[str]:
    """Play a schedule, and return the violations of these properties. Impossible steps are skipped."""
    try:
        with CoreScheme(replace(LOAD, seed=seed), KINDS[seed % len(KINDS)]) as scheme:
            play = _Play(scheme, properties)
            for step in steps:
                play.perform(*step)
            play.end()
    except BrokerBug as bug:
        return [f"{type(bug.__cause__).__name__}: {bug.__cause__}"]
    except (AssertionError, LookupError) as error:
        # the core asserts its own state
        return [f"{type(error).__name__}: {error}"]
    return play.violations


class _Play:
    """A schedule in play, and what it has violated."""

    def __init__(self, scheme: CoreScheme, properties: Collection[str]) -> None:
        self.violations: list[str] = []
        self._properties = properties
        self._scheme = scheme
        self._up: set[str] = set()
        self._cut_off: set[str] = set()
        self._is_broker_down = self._may_miss_growth = self._may_miss_round = False
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
                self._may_miss_growth = scheme.members.is_static
            case "stop_broker" if not self._is_broker_down:
                self._is_broker_down = True
                self._may_miss_round = scheme.members == STATIC_COOPERATIVE
                scheme.stop_broker()
            case "start_broker" if self._is_broker_down:
                self._is_broker_down = False
                scheme.start_broker()
            case "repeat" if self._sent:
                scheme.send(*self._sent[int(argument) % len(self._sent)])
            case "rebalance" if scheme.members.is_classic and scheme.group.state in ("Stable", "CompletingRebalance"):
                scheme.group.rebalance()
            case _:
                pass

    def end(self) -> None:
        """End all faults, let time pass, and compare the views of the members with the group's."""
        for name in sorted(self._cut_off):
            self.perform("reconnect", name)
        self.perform("start_broker", "")
        self.perform("pass_time", END_S)
        group, owned = self._scheme.group.describe(), []
        for name in sorted(self._up):
            puppet = self._scheme.group.puppets[name].describe()
            if puppet.state != "stable":
                self._violate("end", f"{name} ends {puppet.state}, and waits for {puppet.waits_for}")
            member = next((each for each in group.members if each.member_id == puppet.member_id), None)
            if member is None:
                self._violate("end", f"{name} ends as no member of the group")
            elif {topic: list(held) for topic, held in member.assignment.items()} != puppet.assignment:
                self._violate("end", f"{name} ends with {puppet.assignment}, the group with {member.assignment}")
            owned.append(len(puppet.assignment.get(TOPIC, [])))
        if len(group.members) != len(self._up):
            self._violate("end", f"the group ends with {len(group.members)} members, {len(self._up)} run")
        # a static leader does not notice partitions that were added while it was down (KIP-814)
        expected = sum(owned) if self._may_miss_growth else self._scheme.partitions
        is_balanced = not owned or (sum(owned) == expected and max(owned) - min(owned) <= 1 + self._may_miss_growth)
        # a static member that restarts while its coordinator moves forgets that it owes a second round
        if not is_balanced and not self._may_miss_round:
            self._violate("end", f"the members end with {owned} of {self._scheme.partitions} partitions")
        offsets = self._scheme.group.offsets
        for partition, offset in self._committed.items():
            if offsets.get((TOPIC, partition), -1) < offset:
                self._violate("commits", f"the commit of {offset} in partition {partition} is lost")
        trace = GroupTrace(self._scheme.group.events(), GROUP)
        for check, (_, judge) in SERVER_CHECKS.items():
            observations = judge(trace)
            if observations.status == FAIL:
                self._violate("checks", f"{check}: {observations.message}")

    def _violate(self, name: str, text: str) -> None:
        if name in self._properties:
            self.violations.append(text)

    def _check_leader(self) -> None:
        group = self._scheme.group.describe()
        if (
            self._scheme.members.is_classic
            and group.state == "Stable"
            and group.leader not in {member.member_id for member in group.members}
        ):
            self._violate("leader", f"generation {group.generation} is led by {group.leader}, which is not in it")

    def _commit(self, name: str) -> None:
        held = self._scheme.group.puppets[name].assignment.get(TOPIC)
        if held:
            self._offset += 1
            self._scheme.group.puppets[name].commit({(TOPIC, held[0]): self._offset})

    def _observe(self, event: TraceEvent) -> None:
        match event:
            case StateChanged():
                if event.generation < self._written:
                    self._violate("generations", f"generation {event.generation} follows {self._written}")
                self._generation = event.generation
                if event.after in ("Stable", "Empty"):
                    self._written = event.generation
            case MemberChanged(change="removed" | "replaced"):
                self._removed.add(event.member_id)
            case MemberChanged(change="loaded" | "added"):
                # it was removed after the last write of the group, or it joins again with an id of its own (KIP-1082)
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
                    self._violate("owners", f"{change.name} and {other.name} both own partitions {sorted(both)}")

    def _check_sender(self, event: ResponseSent, member_id: str, generation: int) -> None:
        call = event.received.call
        if call.client_id != ONCE:
            self._sent.append((event.received.request, call.api_version))
        # members of a consumer group have epochs of their own
        is_old = self._scheme.members.is_classic and generation != self._generation
        if event.error is Error.NONE and (member_id in self._removed or is_old):
            name = type(event.received.request).__name__
            self._violate("senders", f"{name} of {member_id}, generation {generation}, succeeds in {self._generation}")
