"""Synthetic traces: groups of all kinds in which members come, go, bounce, die, commit and misbehave, by a seed.

A trace is what one test of a suite would have left: a cluster of its own, some groups, some minutes of virtual time.
Every line is one that the emulator writes (see `short_way`); the same seed gives the same lines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.puppets.states import PuppetState
from koordinator.emulator.core.cluster import PLAINTEXT, Endpoint
from koordinator.emulator.server.build import Options, build_world

from .history import History
from .short_way import ShortWay, Time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from koordinator.emulator.control.puppets.puppet import PuppetClient

    from .history import Software

T = TypeVar("T")

BEGIN_MS = 1_700_000_000_000
"""When the first trace begins, in milliseconds since the epoch: 14 November 2023."""

EVENTS_PER_TRACE = 5_000

TESTS = 20
"""The tests of the suite: so many traces are one run of it."""

RUN_EVERY_MS = 3_600_000
"""The suite runs every hour; its tests begin one after the other."""

RUNS_PER_COMMIT = 3

SOFTWARE: tuple[tuple[Software, Software], ...] = (
    (("apache-kafka-java", "4.2.0"), ("apache-kafka-java", "4.3.0")),
    (("kafka-python", "2.3.1"), ("kafka-python", "3.0.12")),
    (("confluent-kafka-python", "2.15.0-rdkafka-2.15.0"), ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")),
)
"""The client libraries: each test has one of them, in its older and its newer version from run to run."""

TOPICS = {"orders": 12, "payments": 6, "stock": 24}

PROTOCOLS = (("range",), ("cooperative-sticky",), ("cooperative-sticky", "range"), ("roundrobin",))

BEHAVIOURS: Sequence[tuple[Mapping[str, object], int]] = (
    ({"kind": "healthy"}, 90),
    ({"kind": "straggler", "delay_s": 4}, 5),
    ({"kind": "flapping", "every_s": 60}, 2),
    ({"kind": "silent"}, 2),
    ({"kind": "never_syncs"}, 1),
)
"""How members behave, and how many of a hundred."""

STEPS = (("bounce", 6), ("kill", 3), ("start", 3), ("leave", 2), ("enforce", 2), ("twin", 1))
"""What happens to a group, and how often in comparison: `enforce` is to join again for no reason, `twin` is to start
another member with the instance id of one that is there."""

CHANGE_AFTER_MS, COMMIT_AFTER_MS, AWAY_MS = (60_000, 150_000), (15_000, 30_000), (2_000, 20_000)
"""From one change of a group to the next; from one commit of a member to the next; how long who bounces is away."""

SESSION_MS = {"dynamic": 10_000, "static": 45_000}
REBALANCE_TIMEOUT_MS = 30_000
BEAT_MS = (2_500, 3_000, 3_500)
MEMBERS = (2, 6)
MEMBERS_MAX = 8

FAILED_PER_CHANGE, FAILED_MAX = 0.01, 0.5
"""How likely a test has failed."""


@dataclass(frozen=True, slots=True)
class Story:
    """One trace: its number, and its lines from the header to how the test ended."""

    number: int
    lines: list[str]

    @property
    def events(self) -> int:
        """How many of the lines are events."""
        return len(self.lines) - 2


def stories(seed: int, events: int, events_per_trace: int = EVENTS_PER_TRACE) -> Iterator[Story]:
    """Traces, one after the other, with so many events in all; the last ones of a trace may be a few more."""
    made = number = 0
    while made < events:
        number += 1
        story = told(seed, number, min(events_per_trace, events - made))
        made += story.events
        yield story


def told(seed: int, number: int, events: int) -> Story:
    """The trace of a number, 1 or more, with so many events at least; it is the same whatever the others are."""
    lines: list[str] = []
    stage = Stage(seed, number, lines.append)
    topics = stage.chance.sample(sorted(TOPICS), stage.chance.randint(1, 3))
    groups = [Group(stage, topic) for topic in topics]
    while stage.events < events:
        stage.pass_time_until(min(group.next_at for group in groups))
        for group in groups:
            group.act()
    lines.append(stage.ending(sum(group.changes for group in groups)))
    return Story(number, lines)


class Stage:
    """A cluster of one node in virtual time."""

    def __init__(self, seed: int, number: int, sink: Callable[[str], None]) -> None:
        self.chance = Random(f"{seed}/{number}")  # noqa: S311 - to be repeated, not to be secret
        run, test = divmod(number - 1, TESTS)
        self._rerun = 0
        self._began_at = BEGIN_MS + run * RUN_EVERY_MS + test * (RUN_EVERY_MS // TESTS)
        self._time = Time(self._began_at)
        self._test_id = f"tests/test_groups.py::test_{test + 1:02}"
        software = SOFTWARE[test % len(SOFTWARE)][run % 2]
        header = {
            "run_id": f"generated-{seed}-{run + 1}",
            "test_id": self._test_id,
            "repo": "koordinator/generated",
            "commit": f"{seed:08x}{run // RUNS_PER_COMMIT:032x}",
            "branch": "main",
            "ci_provider": "generated",
            "os": "none",
            "libs": dict([software]),
            "rerun": 0,
        }
        # for the seed of a cluster there is room for 32 bits
        options = Options(host="simulated", topics=TOPICS, seed=self.chance.getrandbits(32))
        self._world = build_world(
            options,
            lambda: self.now * 1000,
            new_trace=lambda wall_us, **given: History(wall_us, sink, {**given["header"], **header}, software),
        )
        (broker,) = self._world.brokers
        self._world.cluster.brokers[broker.node.node_id].endpoints[PLAINTEXT] = Endpoint("simulated", 9092)
        self._troupe = ShortWay(self._world.brokers, self.trace, self._time)
        self._puppets = Puppets(self._world.brokers, lambda _outputs: None, self._troupe)

    @property
    def now(self) -> int:
        """The time, in milliseconds."""
        return self._time.now

    @property
    def trace(self) -> History:
        """What the lines come from."""
        trace = self._world.trace
        assert isinstance(trace, History)
        return trace

    @property
    def events(self) -> int:
        """How many there are."""
        return self.trace.last_seq

    def pass_time_until(self, at: int) -> None:
        """Let everything happen that is due by then."""
        brokers = self._world.brokers
        self._troupe.beat_until(at)
        while (due := brokers.deadline()) is not None and due <= at:
            self._time.now = max(self.now, due)
            brokers.step(self.now, due)
            self._troupe.beat_until(at)
        self._time.now = max(self.now, at)

    def make(self, group: str, name: str, **wishes: Any) -> PuppetClient:  # noqa: ANN401 - plain data
        """A new puppet, which is in no group yet."""
        self._puppets.create(self.now, group=group, name=name, **wishes)
        return self._troupe.puppets[group, name]

    def tell(self, puppet: PuppetClient, verb: str, **given: object) -> None:
        """Tell a puppet to do something, and let happen at once what needs no waiting."""
        getattr(self._puppets, verb)(self.now, group=puppet.group_id, name=puppet.name, **given)

    def ending(self, changes: int) -> str:
        """The last line: how the test ended. The more has happened to its groups, the likelier it has failed."""
        failed = self.chance.random() < min(changes * FAILED_PER_CHANGE, FAILED_MAX)
        line = {
            "seq": self.events + 1,
            "wall_ts": self.now * 1000,
            "kind": "test",
            "test_id": self._test_id,
            "outcome": "failed" if failed else "passed",
            "duration_ms": self.now - self._began_at,
            "rerun": 0,
            "seed": self._world.seed,
        }
        return self.trace.leaving(line)


class Group:
    """A group and its members: they are started one after the other, and then something happens every now and then."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._stage = stage
        self._topic = topic
        self._name = f"{topic}-svc"
        self._protocols = stage.chance.choice(PROTOCOLS)
        self._membership = stage.chance.choice(sorted(SESSION_MS))
        self._offsets: Counter[tuple[str, int]] = Counter()
        # what is to be done when, by whom: there are few of them
        self._agenda: dict[PuppetClient, int] = {}
        self._started = 0
        self.changes = 0
        self._change_at = stage.now
        for _ in range(stage.chance.randint(*MEMBERS)):
            self._start()

    @property
    def next_at(self) -> int:
        """When `act` is wanted next."""
        return min(self._change_at, *self._agenda.values())

    def act(self) -> None:
        """Do what is due."""
        now, chance = self._stage.now, self._stage.chance
        for puppet in [puppet for puppet, at in self._agenda.items() if at <= now]:
            self._agenda[puppet] = now + chance.randint(*COMMIT_AFTER_MS)
            self._go_on(puppet)
        if self._change_at <= now:
            self._change_at = now + chance.randint(*CHANGE_AFTER_MS)
            self.changes += 1
            self._change(one_of(chance, STEPS))

    def _go_on(self, puppet: PuppetClient) -> None:
        """A member commits, if it is in its group; one that was away is back."""
        if puppet.state is PuppetState.STABLE:
            held = [(topic, partition) for topic, partitions in puppet.role.holds.items() for partition in partitions]
            for place in held:
                self._offsets[place] += self._stage.chance.randint(1, 500)
            if held:
                puppet.commit(self._stage.now, {place: self._offsets[place] for place in held})
        elif puppet.state is PuppetState.OUT and puppet.behaviour.kind != "flapping":
            self._stage.tell(puppet, "join")

    def _change(self, step: str) -> None:
        there = [puppet for puppet in self._agenda if puppet.state is PuppetState.STABLE]
        if step == "start" or len(there) < MEMBERS[0]:
            if len(self._agenda) < MEMBERS_MAX:
                self._start()
            return
        chance = self._stage.chance
        puppet = chance.choice(there)
        if step == "enforce":
            self._stage.tell(puppet, "join")
        elif step == "twin" and puppet.instance_id is not None:
            del self._agenda[puppet]
            self._start(puppet.instance_id)
        else:
            # a static member that is closed says nothing (KIP-345)
            says_so = step != "kill" and puppet.instance_id is None
            self._stage.tell(puppet, "leave" if says_so else "stop")
            if step == "leave":
                del self._agenda[puppet]
            else:
                self._agenda[puppet] = self._stage.now + chance.randint(*AWAY_MS)

    def _start(self, instance_id: str | None = None) -> None:
        chance = self._stage.chance
        self._started += 1
        name = f"{self._topic}-{self._started}"
        puppet = self._stage.make(
            self._name,
            name,
            protocols=self._protocols,
            instance_id=instance_id or (name if self._membership == "static" else None),
            topics=[self._topic],
            behaviour=one_of(chance, BEHAVIOURS),
            session_timeout_ms=SESSION_MS[self._membership],
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            heartbeat_interval_ms=chance.choice(BEAT_MS),
        )
        self._agenda[puppet] = self._stage.now + chance.randint(*COMMIT_AFTER_MS)
        self._stage.tell(puppet, "join")


def one_of(chance: Random, weighted: Sequence[tuple[T, int]]) -> T:
    """One of some things, each as often as its weight has it."""
    return chance.choices([thing for thing, _ in weighted], [weight for _, weight in weighted])[0]
