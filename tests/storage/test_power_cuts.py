"""What survives a crash at any step.

Acknowledged writes survive the end of the process, and with `log.flush.interval.messages=1` the end of the machine,
whatever remains of unsynced writes. Otherwise a power cut may cost the last records of each log, and nothing else.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import Crash, CrashingFiles
from brokers.durable_broker import DIR, DurableCluster
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.config.value_rules import LONG_MAX
from koordinator.emulator.core.data import log as core_log
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

TOPICS = ("t", "u")
GROUPS = ("g", "h", "polygenelubricants")
ABSENT = -1

RequestSpec = tuple[str, str, str]


class World:
    """The acknowledged state, and the possible results of unacknowledged requests."""

    def __init__(self) -> None:
        self.topics: dict[str, set[bool]] = {topic: {False} for topic in TOPICS}
        self.offsets: dict[tuple[str, str], set[int]] = {}
        self.records: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        self.asked: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        self.number = 0
        self.acknowledged = 0

    def perform(self, durable: DurableCluster, request: RequestSpec) -> None:
        """Send a request; record its possible results before, and its actual result after the response."""
        what, group, topic = request
        self.number += 1
        if what == "create":
            self._change(topic, there=True, done=lambda: durable.create(topic))
        elif what == "delete":
            self._change(topic, there=False, done=lambda: durable.delete(topic))
        elif self.topics[topic] != {True}:
            return
        elif what == "commit":
            known = self.offsets.setdefault((group, topic), {ABSENT})
            known.add(self.number)
            # long metadata makes the partition compact early
            assert durable.commit(group, topic, self.number, metadata="x" * 300) is Error.NONE
            self.offsets[group, topic] = {self.number}
            self.acknowledged += 1
        else:
            value = b"%d" % self.number
            self.asked[topic].append(value)
            assert durable.produce(topic, value) is Error.NONE
            self.records[topic].append(value)
            self.asked[topic].clear()
            self.acknowledged += 1

    def _change(self, topic: str, *, there: bool, done: Callable[[], Error]) -> None:
        if there in self.topics[topic]:
            return
        self.topics[topic].add(there)
        if not there:
            for at in self.offsets:
                if at[1] == topic:
                    self.offsets[at].add(ABSENT)
        assert done() is Error.NONE
        self._is(topic, there=there)

    def _is(self, topic: str, *, there: bool) -> None:
        self.topics[topic] = {there}
        if not there:
            self.records[topic], self.asked[topic] = [], []
            # as in Kafka, the response does not wait for the tombstones; the offsets of a deleted topic are unreadable

    def check(self, durable: DurableCluster) -> None:
        """Check that the state is a possible result, and take it as the acknowledged state."""
        for topic, possible in self.topics.items():
            there = topic in durable.node.cluster.topics
            assert there in possible, topic
            self._is(topic, there=there)
            if there:
                values = durable.values(topic)
                told = self.records[topic]
                assert values in (told, [*told, *self.asked[topic]]), topic
                self.records[topic], self.asked[topic] = list(values), []  # type: ignore[arg-type]
        for (group, topic), possible_offsets in self.offsets.items():
            offset = durable.committed(group, topic)
            assert offset in possible_offsets, (group, topic)
            self.offsets[group, topic] = {offset} if self.topics[topic] == {True} else {offset, ABSENT}


REQUESTS = st.tuples(
    st.sampled_from(("commit",) * 6 + ("produce",) * 3 + ("create", "delete")),
    st.sampled_from(GROUPS),
    st.sampled_from(TOPICS),
)


@pytest.fixture(autouse=True, scope="module")
def compacts_often() -> object:
    """Compact partitions after few commits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_log, "COMPACTED_BYTES_MIN", 1500)
        patch.setattr(core_log, "UNCOMPACTED_BYTES", 500)
        yield


def live(files: CrashingFiles, world: World, requests: list[RequestSpec], *, flush_messages: int = 1) -> bool:
    """Start a cluster, check its state, and serve requests; return False after a crash."""
    try:
        durable = DurableCluster(DIR, files, log_flush_interval_messages=flush_messages)
        world.check(durable)
        for topic in TOPICS:
            world.perform(durable, ("create", "", topic))
        for request in requests:
            world.perform(durable, request)
    except Crash:
        return False
    return True


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    lives=st.lists(
        st.tuples(st.lists(REQUESTS, max_size=25), st.integers(0, 120), st.booleans()), min_size=1, max_size=5
    ),
    seed=st.integers(0, 2**32),
)
def test_acknowledged_data_survives_a_crash_at_any_step(
    lives: list[tuple[list[RequestSpec], int, bool]], seed: int
) -> None:
    chance = random.Random(seed)
    files, world = CrashingFiles(), World()
    for requests, crash_at, only_killed in lives:
        files.crash_at = crash_at
        live(files, world, requests)
        files = files.after_kill() if only_killed else files.after_crash(chance)
    assert live(files, world, [("commit", "g", "t"), ("produce", "", "t")])


def scenario() -> list[RequestSpec]:
    """Return requests that compact a partition, and that delete and recreate a topic."""
    commits: list[RequestSpec] = [("commit", GROUPS[n % 3], TOPICS[n % 2]) for n in range(24)]
    return [*commits, ("produce", "", "u"), ("delete", "", "t"), ("create", "", "t"), ("commit", "g", "t")]


@pytest.mark.slow
def test_acknowledged_writes_survive_the_end_of_the_process_at_every_step_of_a_scenario() -> None:
    files = CrashingFiles()
    assert live(files, World(), scenario(), flush_messages=LONG_MAX)
    steps = files.steps
    for crash_at in range(steps):
        files, world = CrashingFiles(), World()
        files.crash_at = crash_at
        assert not live(files, world, scenario(), flush_messages=LONG_MAX)
        assert live(files.after_kill(), world, [("commit", "g", "t")], flush_messages=LONG_MAX)


class Lossy(World):
    """A state of which a power cut may have taken the last records of each log."""

    def check(self, durable: DurableCluster) -> None:
        for topic, possible in self.topics.items():
            there = topic in durable.node.cluster.topics
            assert there in possible, topic
            if there:
                told = [*self.records[topic], *self.asked[topic]]
                values = durable.values(topic)
                assert values == told[: len(values)], topic
            self.records[topic], self.asked[topic] = [], []
        for group, topic in self.offsets:
            if topic in durable.node.cluster.topics:
                offset = durable.committed(group, topic)
                assert offset == ABSENT or 0 < offset <= self.number, (group, topic)


@pytest.mark.slow
@pytest.mark.parametrize("flush_messages", [3, LONG_MAX])
def test_a_power_cut_costs_the_last_records_of_each_log_and_nothing_else(flush_messages: int) -> None:
    files = CrashingFiles()
    assert live(files, World(), scenario(), flush_messages=flush_messages)
    steps, lost = files.steps, 0
    for crash_at in range(steps):
        chance = random.Random(crash_at)
        files, world = CrashingFiles(), Lossy()
        files.crash_at = crash_at
        assert not live(files, world, scenario(), flush_messages=flush_messages)
        told = sum(map(len, world.records.values()))
        durable = DurableCluster(DIR, files.after_crash(chance))
        world.check(durable)
        found = sum(len(durable.values(topic)) for topic in TOPICS if topic in durable.node.cluster.topics)
        lost += found < told
    assert lost > 0, "the cuts were too kind"


def test_a_log_is_synced_when_it_has_as_many_new_records_as_the_setting_says() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files, log_flush_interval_messages=3)
    durable.create("t")
    survivors = []
    for number in range(1, 8):
        assert durable.produce("t", b"%d" % number) is Error.NONE
        kept = CrashingFiles(files.root.survive(Least(0)))
        survivors.append(len(DurableCluster(DIR, kept).values("t")))
    assert survivors == [0, 0, 3, 3, 3, 6, 6]
    durable.built.close()
    assert len(DurableCluster(DIR, CrashingFiles(files.root.survive(Least(0)))).values("t")) == 7


class Least(random.Random):
    """Every draw is the lowest possible one: nothing that is not synced survives."""

    def randint(self, a: int, b: int) -> int:
        return min(a, b)

    def random(self) -> float:
        return 0.0


@pytest.mark.slow
def test_acknowledged_writes_survive_a_crash_at_every_step_of_a_scenario() -> None:
    files = CrashingFiles()
    assert live(files, World(), scenario())
    steps, torn = files.steps, 0
    assert steps > 150
    for crash_at in range(steps):
        chance = random.Random(crash_at)
        files, world = CrashingFiles(), World()
        files.crash_at = crash_at
        assert not live(files, world, scenario())
        for _ in range(2):
            survived = files.after_crash(chance)
            durable = DurableCluster(DIR, survived, log_flush_interval_messages=1)
            torn += any("cut off" in line for line in durable.logged)
            after = World()
            after.__dict__.update({name: _copy(value) for name, value in vars(world).items()})
            after.check(durable)
            assert live(survived.after_crash(chance), after, [("commit", "g", "t")]), "cut-off data stays cut off"
    assert torn > 10, "the crashes were too kind"


def _copy(value: object) -> object:
    if isinstance(value, dict):
        return {key: type(inner)(inner) for key, inner in value.items()}
    return value
