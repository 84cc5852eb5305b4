"""Many groups side by side on one broker, and what they have shown."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brokers.real_kafka import RealKafka
from clients.raw_member import Rival
from scenes.random_groups import KINDS, TOPICS, RandomHistory
from scenes.recorded_groups import Messages, Recording

from exploring.consumers import histories
from exploring.consumers.histories import MixedHistory
from exploring.consumers.pair import ANSWER_S, LOOK_S, Core, DifferenceError, Pair
from exploring.consumers.streams import StreamsHistory
from exploring.releases import versions_of
from koordinator.client.admin import Admin
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from exploring.releases import Release

AT_ONCE = 8
ADMIN_S = 60

SETTINGS = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
    # longer than any history
    "group.consumer.session.timeout.ms": "600000",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.initial.rebalance.delay.ms": "0",
    # one shard: it is up to date for all groups when it is for one
    "offsets.topic.num.partitions": "1",
}

MIGRATIONS: Mapping[str, Mapping[str, str]] = {
    "bidirectional": {},
    "small": {"group.consumer.max.size": "3", "group.max.size": "3"},
    "upgrade": {"group.consumer.migration.policy": "upgrade"},
    "downgrade": {"group.consumer.migration.policy": "downgrade"},
    "disabled": {"group.consumer.migration.policy": "disabled"},
}
"""The setups of groups with both protocols; half of the seeds go to the first."""

STREAMS = {
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "group.streams.heartbeat.interval.ms": "5000",
    "group.streams.session.timeout.ms": "600000",
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
    "group.streams.max.size": "5",
    # with the answer, not in another thread
    "group.streams.assignor.offload.enable": "false",
}

GROWING = ("growing", "growing mixed")


@dataclass
class Findings:
    """The results. `targets` counts compared targets by the kind of group; `answers` by API and error."""

    groups: int = 0
    requests: int = 0
    targets: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Add other results."""
        self.groups += other.groups
        self.requests += other.requests
        self.targets.update(other.targets)
        self.differences += other.differences


class Side:
    """A running broker, and the core with its topics."""

    def __init__(
        self, kafka: RealKafka, release: Release, settings: Mapping[str, str], topics: Mapping[str, int]
    ) -> None:
        self.kafka, self.release = kafka, release
        for name, count in topics.items():
            kafka.create_topic(name, count)
        self.topics = {name: (count, self._id_of(name)) for name, count in topics.items()}
        self.core = Core(release, settings, self.topics)
        name, (count, _) = list(self.topics.items())[-1]
        self._await(name, count)

    def _id_of(self, name: str) -> UUID:
        with Admin((self.kafka.address,), ADMIN_S, "1") as admin:
            return admin.topics([name]).topics[0].topic_id

    def create_topic(self, name: str, count: int) -> UUID:
        """Create a topic on both sides."""
        self.kafka.create_topic(name, count)
        topic_id = self._id_of(name)
        with self.core.lock:
            self.core.uuids.clear()
            self.core.create_topic(name, count, topic_id)
        self._await(name, count)
        return topic_id

    def grow(self, name: str) -> None:
        """Add partitions to a topic on both sides."""
        count = len(self.core.cluster.topics[name].logs) + random.Random(name).randint(1, 4)
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        with Rival(self.kafka.bootstrap_servers) as line:
            answer = line.ask(CreatePartitionsRequest(topics=(topic,), timeout_ms=ADMIN_S * 1000), 3)
        assert [row.error_code for row in answer.results] == [0], answer
        with self.core.lock:
            self.core.cluster.grow_topic(self.core.cluster.topics[name], count)
        self._await(name, count)

    def await_internal(self, group: str) -> None:
        """Wait until the coordinator knows the internal topics that the core has created for a streams group."""
        with self.core.lock:
            counts = {name: len(topic.logs) for name, topic in self.core.cluster.topics.items()}
        for name, count in counts.items():
            if name.startswith(f"{group}-"):
                self._await(name, count)

    def _await(self, name: str, count: int) -> None:
        """Wait until the coordinator knows the partitions of a topic: a new group of its own gets them."""
        version = versions_of(self.release, "ConsumerGroupHeartbeat")[1]
        with Rival(self.kafka.bootstrap_servers) as line:
            for number in range(round(ANSWER_S / LOOK_S)):
                request = ConsumerGroupHeartbeatRequest(
                    group_id=f"{name}.{count}.{number}",
                    member_id="probe",
                    rebalance_timeout_ms=ADMIN_S * 1000,
                    subscribed_topic_names=(name,),
                    topic_partitions=(),
                )
                rows = line.ask(request, version).assignment.topic_partitions
                if sum(len(row.partitions) for row in rows) == count:
                    return
                line.is_answered(LOOK_S)
        raise AssertionError(f"the coordinator does not know the {count} partitions of {name}")


def explore_assignments(release: Release, seeds: Sequence[int], say: Callable[[str], None]) -> Findings:
    """Compare the answers and targets of random groups, which the server assigns."""
    kinds = (*KINDS, *GROWING)

    def play(side: Side, seed: int, found: Findings) -> None:
        pair = Pair(side.kafka.bootstrap_servers, side.core, f"assigned-{seed}")
        rng = random.Random(f"assignments {seed}")
        kind = kinds[seed % len(kinds)]
        topics = {name: topic_id for name, (_, topic_id) in side.topics.items()}
        own = [f"own-{seed}-{number}" for number in range(2)] if kind in GROWING else []
        topics |= {name: side.create_topic(name, rng.randint(1, 9)) for name in own}
        messages = Messages(Recording(release.line, 1, [(name, 0, topics[name]) for name in topics], []))
        epochs: set[int] = set()

        def ask(request: Any) -> Any:
            if "grow" in request:
                side.grow(request["grow"])
                return {"c": 0}
            api = "ConsumerGroupDescribe" if "describe" in request else "ConsumerGroupHeartbeat"
            answer = pair.ask(messages.request(pair.group, request), versions_of(release, api)[1])
            if "describe" in request:
                (row,) = answer.groups
                if row.members and row.assignment_epoch not in epochs:
                    epochs.add(row.assignment_epoch)
                    is_equal = len({frozenset(each.subscribed_topic_names) for each in row.members}) == 1
                    found.targets[f"{row.assignor_name}, {kind}, {'equal' if is_equal else 'mixed'}"] += 1
            return messages.answer(answer)

        try:
            RandomHistory(rng, ask, own or tuple(TOPICS), kind).play()
        finally:
            found.requests += pair.requests
            pair.close()

    return _explore(release, {}, TOPICS, seeds, play, say)


def explore_migrations(release: Release, seeds: Sequence[int], say: Callable[[str], None]) -> Findings:
    """Compare all answers of random groups with members of both protocols, under every migration policy."""
    found = Findings()
    names = list(MIGRATIONS)
    for number, (name, settings) in enumerate(MIGRATIONS.items()):
        own = [seed for seed in seeds if number == max(seed % (2 * len(names) - 2) - len(names) + 2, 0)]

        def play(side: Side, seed: int, found: Findings, name: str = name) -> None:
            pair = Pair(side.kafka.bootstrap_servers, side.core, f"{name}-{seed}")
            topics = {each: topic_id for each, (_, topic_id) in side.topics.items()}
            try:
                MixedHistory(random.Random(f"migration {seed}"), pair, release, topics).play()
            finally:
                found.requests += pair.requests
                pair.close()

        if own:
            found.add(_explore(release, settings, histories.TOPICS, own, play, partial(_say, say, name)))
    return found


def explore_streams(release: Release, seeds: Sequence[int], say: Callable[[str], None]) -> Findings:
    """Compare all answers of random streams groups."""

    def play(side: Side, seed: int, found: Findings) -> None:
        pair = Pair(side.kafka.bootstrap_servers, side.core, f"streams-{seed}")
        try:
            StreamsHistory(random.Random(f"streams {seed}"), pair, side).play()
        finally:
            found.requests += pair.requests
            pair.close()

    return _explore(release, STREAMS, histories.TOPICS, seeds, play, say)


def _say(say: Callable[[str], None], where: str, text: str) -> None:
    say(f"{where}: {text}")


def _explore(
    release: Release,
    settings: Mapping[str, str],
    topics: Mapping[str, int],
    seeds: Iterable[int],
    play: Callable[[Side, int, Findings], None],
    say: Callable[[str], None],
) -> Findings:
    chosen = {**SETTINGS, **settings}

    def one(side: Side, seed: int) -> Findings:
        found = Findings(groups=1)
        try:
            play(side, seed, found)
        except DifferenceError as difference:
            found.differences.append(f"seed {seed}: {difference}")
            say(found.differences[-1])
        return found

    total = Findings()
    with tempfile.TemporaryDirectory() as folder, RealKafka(Path(folder), release, chosen) as kafka:
        side = Side(kafka, release, chosen, topics)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for found in threads.map(lambda seed: one(side, seed), seeds):
                total.add(found)
                if total.groups % 50 == 0:
                    say(f"{total.groups} groups, {total.requests} requests, {len(total.differences)} differences")
    return total
