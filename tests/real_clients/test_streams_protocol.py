"""Kafka Streams with its own protocol (KIP-1071): scaling out and in, standby tasks, both processing guarantees."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import COMPLETE
from clients.consumers import wait_until
from clients.streams_instances import instance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clients.consumers import Member, Members
    from clients.streams_instances import Instance

    from koordinator import Cluster

pytestmark = pytest.mark.needs("java")

APPLICATION = "words"
CHANGELOG, BETWEEN = f"{APPLICATION}-counts-changelog", f"{APPLICATION}-counts-repartition"

TASKS = {f"{part}_{partition}" for part in (0, 1) for partition in range(4)}
"""All tasks: the first subtopology splits lines, and the second one counts words."""

LINES = ["to be or not to be", "that is the question", "to die to sleep"]
WORDS = Counter(word for line in LINES for word in line.split())

SETTINGS = {
    "application.id": APPLICATION,
    "group.protocol": "streams",
    "commit.interval.ms": 100,
    "producer.transaction.timeout.ms": 6_000,
}

words_marker = pytest.mark.koordinator(
    topics={"in": 4, "out": 1},
    config={
        "group.streams.session.timeout.ms": 6_000,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    },
)


@contextmanager
def counting(koordinator: Cluster, folder: Path, guarantee: str = "at_least_once") -> Iterator[Instance]:
    settings = SETTINGS | {"bootstrap.servers": koordinator.bootstrap_servers, "processing.guarantee": guarantee}
    with instance("WordCounting", COMPLETE, settings, folder) as running:
        yield running


def produce(koordinator: Cluster, times: int) -> None:
    koordinator.produce("in", [(f"{number}", line) for number in range(times) for line in LINES])


def expected(times: int) -> set[str]:
    """Return the results after so many times all lines: each count of each word."""
    return {f"{word}={count}" for word, once in WORDS.items() for count in range(1, once * times + 1)}


def tasks(running: Instance) -> tuple[set[str], set[str]]:
    """Return active and standby tasks of an instance, by its own account; none before its first answer."""
    running.ask("tasks")
    said = [line for line in running.lines if line.startswith("active")]
    active, _, standby = said[-1].removeprefix("active").partition("standby") if said else ("", "", "")
    return set(active.split()), set(standby.split())


def counts(out: Member) -> list[str]:
    """Return the results that a consumer has read."""
    return [value.decode() for value in out.values]


def wait_for_counts(out: Member, times: int) -> None:
    wait_until("each count", lambda: expected(times) <= set(counts(out)), out, patience_s=90)


@words_marker
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_an_application_scales_out_and_in_and_counts_every_word(
    koordinator: Cluster, join: Members, tmp_path: Path, guarantee: str
) -> None:
    out = join("confluent-kafka", topics=["out"], group="out", isolation_level="read_committed")
    group = koordinator.group(APPLICATION)
    with counting(koordinator, tmp_path / "one", guarantee) as one:
        wait_until("all tasks", lambda: tasks(one)[0] == TASKS, out, patience_s=90)
        assert (group.type, group.state, len(group.members)) == ("streams", "Stable", 1)
        assert {name: len(koordinator.topic(name).partitions) for name in (BETWEEN, CHANGELOG)} == {
            BETWEEN: 4,
            CHANGELOG: 4,
        }
        produce(koordinator, 5)
        wait_for_counts(out, 5)
        with counting(koordinator, tmp_path / "two", guarantee) as two:
            wait_until("half each", lambda: [len(tasks(each)[0]) for each in (one, two)] == [4, 4], out, patience_s=90)
            assert tasks(one)[0] | tasks(two)[0] == TASKS
            produce(koordinator, 5)
            wait_for_counts(out, 10)
            two.close()
            wait_until("all tasks again", lambda: tasks(one)[0] == TASKS, out, patience_s=90)
        produce(koordinator, 5)
        wait_for_counts(out, 15)
        one.close()
        wait_until("an empty group", lambda: group.state == "Empty", out)
    # nothing is counted twice: no instance was killed
    assert Counter(counts(out)) == Counter(expected(15))


@words_marker
def test_no_word_is_counted_twice_although_an_instance_is_killed(
    koordinator: Cluster, join: Members, tmp_path: Path
) -> None:
    out = join("confluent-kafka", topics=["out"], group="out", isolation_level="read_committed")
    group, guarantee = koordinator.group(APPLICATION), "exactly_once_v2"
    with counting(koordinator, tmp_path / "one", guarantee) as one, counting(koordinator, tmp_path / "two", guarantee):
        wait_until("both instances", lambda: len(group.members) == 2 and group.state == "Stable", out, patience_s=90)
        produce(koordinator, 5)
        wait_for_counts(out, 1)
        produce(koordinator, 5)
        one.kill()
        produce(koordinator, 5)
        wait_for_counts(out, 15)
        assert len(group.members) == 1
    assert Counter(counts(out)) == Counter(expected(15))


@pytest.mark.koordinator(
    topics={"in": 4, "out": 1},
    config={"group.streams.session.timeout.ms": 6_000, "group.streams.num.standby.replicas": 1},
)
def test_a_standby_task_takes_over_without_reading_the_changelog_again(
    koordinator: Cluster, join: Members, tmp_path: Path
) -> None:
    out = join("confluent-kafka", topics=["out"], group="out")
    counters = {name for name in TASKS if name.startswith("1_")}
    with counting(koordinator, tmp_path / "one") as one, counting(koordinator, tmp_path / "two") as two:

        def is_shared() -> bool:
            (active, standby), (others, other_standby) = tasks(one), tasks(two)
            return active | others == TASKS and standby == others & counters and other_standby == active & counters

        wait_until("tasks and standby tasks", is_shared, out, patience_s=90)
        produce(koordinator, 50)
        wait_for_counts(out, 50)
        before = len(two.lines)
        one.kill()
        wait_until("all tasks", lambda: tasks(two)[0] == TASKS, out, patience_s=90)
        produce(koordinator, 1)
        wait_for_counts(out, 51)
        restored = sum(int(line.split()[2]) for line in two.lines[before:] if line.startswith("restored"))
    assert restored < len(expected(50)) // 10
