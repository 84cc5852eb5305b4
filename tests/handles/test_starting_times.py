"""Nothing depends on the phase of the wall clock: a session is the same whenever it starts, but for its times."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from koordinator import Simulation
from koordinator.handles import simulation as virtual

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.handles.cluster import Cluster

NEAR_MS = 100 * 86_400_000
"""Numbers that are this near to the start are times."""

CONFIG = {
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 7_000,
    "producer.id.expiration.ms": 1_500,
    "producer.id.expiration.check.interval.ms": 2_700,
    "transactional.id.expiration.ms": 15_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 4_000,
    "log.initial.task.delay.ms": 3_000,
    "log.retention.check.interval.ms": 11_000,
    "log.retention.by.default": True,
    "log.cleaner.backoff.ms": 1_500,
}
"""Short times, so that everything that happens by time happens."""


def relative(value: Any, start_ms: int) -> Any:
    """Return data with times relative to the start, those in microseconds included."""
    match value:
        case dict():
            return {key: relative(each, start_ms) for key, each in value.items()}
        case list() | tuple():
            return [relative(each, start_ms) for each in value]
        case int() if abs(value - start_ms) < NEAR_MS:
            return ("ms", value - start_ms)
        case int() if abs(value - start_ms * 1_000) < NEAR_MS * 1_000:
            return ("us", value - start_ms * 1_000)
        case _:
            return value


def play(seed: int, start_ms: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """Play a random session that starts at a time; return its results and its trace."""
    monkeypatch.setattr(virtual, "BEGIN_MS", start_ms)
    chance = random.Random(seed)
    session = Simulation(brokers=2, topics={"t": 2}, seed=seed, config=CONFIG, kafka_version=chance.choice(RELEASES))
    results: list[Any] = []
    with session as cluster:
        configs = {"cleanup.policy": "compact,delete", "segment.ms": "1000", "retention.ms": "20000"}
        cluster.create_topic("c", configs={**configs, "min.cleanable.dirty.ratio": "0"})
        for number in range(12):
            try:
                results.append(chance.choice(ACTS)(cluster, chance, start_ms, number))
            except ValueError as error:
                results.append(str(error))
            cluster.pass_time(chance.choice([0, 0.5, 1, 3, 8]))
            results.append(
                {topic: [(at.partition, at.offset, at.value) for at in cluster.records(topic)] for topic in ("t", "c")}
            )
            logs = [log for topic in session._ports[-1].built.cluster.topics.values() for log in topic.logs]
            results.append([[each.id for each in log.producers] for log in logs])
            results.append([(group.id, group.state, group.offsets) for group in cluster.groups()])
        return relative(results, start_ms), relative(cluster.events(), start_ms)


def _join(cluster: Cluster, chance: random.Random, _: int, number: int) -> None:
    kind = chance.choice(["classic", "consumer"])
    cluster.group(kind).create_puppet(f"p{number}", topics=["t"], group_protocol=kind).join()


def _leave(cluster: Cluster, chance: random.Random, *_: int) -> None:
    puppets = [puppet for group in cluster.groups() for puppet in group.puppets.values() if puppet.state == "stable"]
    if puppets:
        puppet = chance.choice(puppets)
        chance.choice([puppet.leave, lambda: puppet.commit({("t", 0): 1})])()


def _produce(cluster: Cluster, chance: random.Random, start_ms: int, number: int) -> None:
    timestamp = start_ms - chance.choice([0, 10_000, 8 * 86_400_000])
    record = {"key": chance.choice("ab"), "value": str(number), "timestamp": timestamp}
    cluster.produce(chance.choice("tc"), record)


def _transact(cluster: Cluster, chance: random.Random, _: int, number: int) -> None:
    transactional_id = chance.choice([None, "x", "y"])
    producer = cluster.create_producer(f"q{number}", transactional_id).init()
    producer.produce(chance.choice("tc"), "a")
    if transactional_id is not None:
        chance.choice([producer.commit, producer.abort, lambda: None])()


def _node(cluster: Cluster, chance: random.Random, *_: int) -> None:
    node = cluster.nodes[chance.choice([1, 2])]
    if node.state == "down":
        node.start()
    elif all(each.state == "up" for each in cluster.nodes.values()):
        chance.choice([node.kill, node.stop])()


ACTS: list[Callable[..., Any]] = [_join, _join, _leave, _produce, _produce, _transact, _transact, _node]
RELEASES = ["3.9", "4.0", "4.3", "4.4"]


FEW, MANY = 4, 60
"""The numbers of sessions that every run plays, and a slow one."""


@pytest.mark.parametrize("seed", [*range(FEW), *(pytest.param(at, marks=pytest.mark.slow) for at in range(FEW, MANY))])
def test_a_session_is_the_same_whenever_it_starts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # a random time, and one shortly before a multiple of every interval
    starts = random.Random(seed).randrange(1_500_000_000_000, 1_900_000_000_000), 277_200_000 * 6_133 - seed % 9_000
    one, other = (play(seed, start_ms, monkeypatch) for start_ms in starts)
    for lines, others in zip(one, other, strict=True):
        assert len(lines) == len(others)
        for line, another in zip(lines, others, strict=True):
            assert line == another
