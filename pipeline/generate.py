"""Synthetic traces: groups whose members start, bounce, crash, commit and misbehave, driven by a seed.

One trace equals the trace of one test in a suite: its own cluster, a few groups, some minutes of virtual time.
Puppets join a simulated cluster, so the emulator itself writes every line. A trace depends on the seed, its number
and its size alone, so several processes can generate one set of traces.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.emulator.config.options import Options
from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.puppets.states import PuppetState
from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor
from koordinator.emulator.core.brokers import PLAINTEXT, Endpoint
from koordinator.emulator.server.build import build_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from koordinator.emulator.control.puppets.puppet import PuppetClient

T = TypeVar("T")

BEGIN_MS = 1_700_000_000_000
"""Start of the first trace, in milliseconds since the epoch: 14 November 2023."""

EVENTS_PER_TRACE = 5_000

TESTS = 20
"""Tests in the suite, and therefore traces in one run of it."""

RUN_EVERY_MS = 3_600_000
"""Interval between two runs of the suite; the tests of a run start at equal distances within it."""

RUNS_PER_COMMIT = 3

Software = tuple[str, str]
"""Name and version of a client library."""

SOFTWARE: tuple[tuple[Software, Software], ...] = (
    (("apache-kafka-java", "4.2.0"), ("apache-kafka-java", "4.3.0")),
    (("kafka-python", "2.3.1"), ("kafka-python", "3.0.12")),
    (("confluent-kafka-python", "2.15.0-rdkafka-2.15.0"), ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")),
)
"""The client libraries. A test always uses the same one; runs alternate between its older and its newer version."""

TOPICS = {"orders": 12, "payments": 6, "stock": 24}

PROTOCOLS = (("range",), ("cooperative-sticky",), ("cooperative-sticky", "range"), ("roundrobin",))

BEHAVIOURS: Sequence[tuple[Mapping[str, object], int]] = (
    ({"kind": "healthy"}, 90),
    ({"kind": "straggler", "delay_s": 4}, 5),
    ({"kind": "flapping", "every_s": 60}, 2),
    ({"kind": "silent"}, 2),
    ({"kind": "never_syncs"}, 1),
)
"""Behaviours of members, with their shares in percent."""

CHANGES = (("bounce", 6), ("kill", 3), ("start", 3), ("leave", 2), ("enforce", 2), ("twin", 1))
"""Changes to a group, with their weights. `enforce` makes a member rejoin without a reason; `twin` starts a second
member with the instance id of a running one."""

CHANGE_AFTER_MS, COMMIT_AFTER_MS, AWAY_MS = (60_000, 150_000), (15_000, 30_000), (2_000, 20_000)
"""Ranges: between two changes of a group, between two commits of a member, and the downtime of a bouncing member."""

SESSION_MS = {"dynamic": 10_000, "static": 45_000}
REBALANCE_TIMEOUT_MS = 30_000
HEARTBEAT_MS = (2_500, 3_000, 3_500)
MEMBERS = (2, 6)
MEMBERS_MAX = 8

FAILED_PER_CHANGE, FAILED_MAX = 0.01, 0.5
"""Probability that a test fails: per change of its groups, and at most."""


@dataclass(frozen=True, slots=True)
class SyntheticTrace:
    """The lines of one trace, from the header to the outcome of the test."""

    number: int
    lines: list[str]

    @property
    def events(self) -> int:
        """Number of lines that are events."""
        return len(self.lines) - 2


def trace_sizes(events: int, events_per_trace: int = EVENTS_PER_TRACE) -> list[int]:
    """Return the minimum number of events of each trace; they add up to `events`."""
    full, rest = divmod(events, events_per_trace)
    return [events_per_trace] * full + ([rest] if rest else [])


def generate_trace(seed: int, number: int, events: int) -> SyntheticTrace:
    """Generate the trace with this number, from 1 on; it has `events` events, or a few more."""
    cluster = SyntheticCluster(seed, number)
    topics = cluster.random.sample(sorted(TOPICS), cluster.random.randint(1, 3))
    groups = [SyntheticGroup(cluster, topic) for topic in topics]
    cluster.collect_lines()
    while cluster.events < events:
        cluster.advance_to(min(group.next_at for group in groups))
        for group in groups:
            group.act()
        cluster.collect_lines()
    cluster.add_outcome(sum(group.changes for group in groups))
    return SyntheticTrace(number, cluster.lines)


class SyntheticCluster:
    """A single-node cluster in virtual time, and the trace lines it has written."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = Random(f"{seed}/{number}")  # noqa: S311 - reproducible, not secret
        run, test = divmod(number - 1, TESTS)
        self._started_at = BEGIN_MS + run * RUN_EVERY_MS + test * (RUN_EVERY_MS // TESTS)
        self.now = self._started_at
        """Virtual time, in milliseconds since the epoch."""
        self._test_id = f"tests/test_groups.py::test_{test + 1:02}"
        self._software = SOFTWARE[test % len(SOFTWARE)][run % 2]
        about = {
            "run_id": f"generated-{seed}-{run + 1}",
            "test_id": self._test_id,
            "repo": "koordinator/generated",
            "commit": f"{seed:08x}{run // RUNS_PER_COMMIT:032x}",
            "branch": "main",
            "ci_provider": "generated",
            "os": "none",
            "libs": dict([self._software]),
            "rerun": 0,
        }
        # a cluster's seed has 32 bits
        options = Options(host="simulated", topics=TOPICS, seed=self.random.getrandbits(32), trace_header=about)
        self._world = build_cluster(options, lambda: self.now * 1000)
        for broker in self._world.cluster.brokers.values():
            broker.endpoints[PLAINTEXT] = Endpoint("simulated", 9092)
        self._supervisor = PuppetSupervisor(self._world.runtime)
        self._puppets = Puppets(self._world.runtime, lambda _outputs: None, self._supervisor)
        self.lines = [self._world.trace.encode(self._world.trace.header)]

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self._world.trace.last_seq

    def advance_to(self, at: int) -> None:
        """Advance the time to `at`, and fire every deadline on the way."""
        brokers = self._world.runtime
        while (due := brokers.deadline()) is not None and due <= at:
            self.now = max(self.now, due)
            brokers.tick(self.now)
        self.now = max(self.now, at)

    def create_puppet(self, group: str, name: str, **settings: Any) -> PuppetClient:  # noqa: ANN401 - plain data
        """Create a puppet, which has not joined yet."""
        self._puppets.create(self.now, group=group, name=name, **settings)
        return self._supervisor.puppets[group, name]

    def command(self, puppet: PuppetClient, verb: str, **arguments: object) -> None:
        """Make a puppet act; effects without a delay happen at once."""
        getattr(self._puppets, verb)(self.now, group=puppet.group_id, name=puppet.name, **arguments)

    def collect_lines(self) -> None:
        """Move the events of the trace to `lines`; requests and responses get the client's software."""
        trace = self._world.trace
        for event in trace.events():
            if event["kind"] in {"request", "response"}:
                # the body stays the last column
                body = {"body": event.pop("body")} if "body" in event else {}
                event["client_software"], event["client_version"] = self._software
                event.update(body)
            self.lines.append(trace.encode(event))
        trace.clear()

    def add_outcome(self, changes: int) -> None:
        """Append the last line: the outcome of the test. More changes make a failure more likely."""
        failed = self.random.random() < min(changes * FAILED_PER_CHANGE, FAILED_MAX)
        outcome = {
            "seq": self.events + 1,
            "wall_ts": self.now * 1000,
            "kind": "test",
            "test_id": self._test_id,
            "outcome": "failed" if failed else "passed",
            "duration_ms": self.now - self._started_at,
            "rerun": 0,
            "seed": self._world.seed,
        }
        self.lines.append(self._world.trace.encode(outcome))


class SyntheticGroup:
    """A group whose members commit and change at random times."""

    def __init__(self, cluster: SyntheticCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._name = f"{topic}-svc"
        self._protocols = cluster.random.choice(PROTOCOLS)
        self._membership = cluster.random.choice(sorted(SESSION_MS))
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._next_act_at: dict[PuppetClient, int] = {}
        self._started = 0
        self.changes = 0
        self._change_at = cluster.now
        for _ in range(cluster.random.randint(*MEMBERS)):
            self._start()

    @property
    def next_at(self) -> int:
        """Next time at which `act` has something to do."""
        return min(self._change_at, *self._next_act_at.values())

    def act(self) -> None:
        """Do everything that is due."""
        now, random = self._cluster.now, self._cluster.random
        for puppet in [puppet for puppet, at in self._next_act_at.items() if at <= now]:
            self._next_act_at[puppet] = now + random.randint(*COMMIT_AFTER_MS)
            self._commit_or_rejoin(puppet)
        if self._change_at <= now:
            self._change_at = now + random.randint(*CHANGE_AFTER_MS)
            self.changes += 1
            self._change(weighted_choice(random, CHANGES))

    def _commit_or_rejoin(self, puppet: PuppetClient) -> None:
        if puppet.state is PuppetState.STABLE:
            held = [(topic, partition) for topic, partitions in puppet.holds.items() for partition in partitions]
            for partition in held:
                self._offsets[partition] += self._cluster.random.randint(1, 500)
            if held:
                puppet.commit(self._cluster.now, {partition: self._offsets[partition] for partition in held})
        elif puppet.state is PuppetState.OUT and puppet.behaviour.kind != "flapping":
            self._cluster.command(puppet, "join")

    def _change(self, change: str) -> None:
        stable = [puppet for puppet in self._next_act_at if puppet.state is PuppetState.STABLE]
        if change == "start" or len(stable) < MEMBERS[0]:
            if len(self._next_act_at) < MEMBERS_MAX:
                self._start()
            return
        random = self._cluster.random
        puppet = random.choice(stable)
        if change == "enforce":
            self._cluster.command(puppet, "join")
        elif change == "twin" and puppet.instance_id is not None:
            del self._next_act_at[puppet]
            self._start(puppet.instance_id)
        else:
            # a static member sends no LeaveGroup when it closes (KIP-345)
            sends_leave = change != "kill" and puppet.instance_id is None
            self._cluster.command(puppet, "leave" if sends_leave else "stop")
            if change == "leave":
                del self._next_act_at[puppet]
            else:
                self._next_act_at[puppet] = self._cluster.now + random.randint(*AWAY_MS)

    def _start(self, instance_id: str | None = None) -> None:
        random = self._cluster.random
        self._started += 1
        name = f"{self._topic}-{self._started}"
        puppet = self._cluster.create_puppet(
            self._name,
            name,
            protocols=self._protocols,
            instance_id=instance_id or (name if self._membership == "static" else None),
            topics=[self._topic],
            behaviour=weighted_choice(random, BEHAVIOURS),
            session_timeout_ms=SESSION_MS[self._membership],
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            heartbeat_interval_ms=random.choice(HEARTBEAT_MS),
        )
        self._next_act_at[puppet] = self._cluster.now + random.randint(*COMMIT_AFTER_MS)
        self._cluster.command(puppet, "join")


def weighted_choice(random: Random, weighted: Sequence[tuple[T, int]]) -> T:
    """Return one of the values, at random, by weight."""
    return random.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]
