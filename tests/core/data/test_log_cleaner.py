"""Retention and compaction by the configs of topics, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.handles.cluster import Cluster
    from koordinator.handles.topics import Topic

SMALL = "14"
"""The smallest `segment.bytes` up to 3.9: each batch is a segment."""

COMPACT = {"cleanup.policy": "compact", "segment.bytes": SMALL, "min.cleanable.dirty.ratio": "0"}

CHECK_S, CLEANER_S = 300, 15
"""The intervals of retention checks and of the cleaner."""


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    return Simulation(kafka_version="3.9")


@pytest.fixture
def cluster(simulation: Simulation) -> Iterator[Cluster]:
    with simulation as cluster:
        yield cluster


def topic_with(cluster: Cluster, **configs: str) -> Topic:
    return cluster.create_topic("t", configs={name.replace("_", "."): text for name, text in configs.items()})


def values(topic: Topic) -> list[bytes | None]:
    return [record.value for record in topic.records()]


def test_records_expire_at_the_first_check_after_retention_ms(simulation: Simulation, cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="60000")
    topic.produce("a")
    simulation.pass_time(59)
    topic.produce("b")
    assert values(topic) == [b"a", b"b"]
    simulation.pass_time(2 * CHECK_S)
    assert values(topic) == []
    assert topic.partitions[0].end_offset == 2
    topic.produce("c")
    assert [record.offset for record in topic.records()] == [2]


def test_topics_inherit_the_configs_of_brokers() -> None:
    config = {"log.retention.hours": "1", "log.retention.minutes": "5", "log.segment.bytes": "14"}
    simulation = Simulation(kafka_version="3.9", config=config)
    with simulation as cluster:
        inherited, own = cluster.create_topic("t"), cluster.create_topic("u", configs={"retention.ms": "-1"})
        for topic in (inherited, own):
            topic.produce("a")
        simulation.pass_time(2 * CHECK_S)
        assert values(inherited) == []
        assert values(own) == [b"a"]


def test_a_segment_expires_with_its_newest_record(simulation: Simulation, cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="400000")
    topic.produce("a")
    simulation.pass_time(250)
    topic.produce("b")
    simulation.pass_time(CHECK_S)
    assert values(topic) == [b"a", b"b"]
    simulation.pass_time(CHECK_S)
    assert values(topic) == []


def test_only_whole_segments_expire(simulation: Simulation, cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="300000", segment_ms="1000")
    topic.produce("a")
    simulation.pass_time(250)
    topic.produce("b")
    simulation.pass_time(CHECK_S)
    assert values(topic) == [b"b"]


def test_the_oldest_segments_beyond_retention_bytes_are_deleted(simulation: Simulation, cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_bytes="150", segment_bytes=SMALL)
    for value in "abcd":
        topic.produce(value)
    simulation.pass_time(CHECK_S)
    # a batch has 69 bytes; a log never becomes smaller than the limit
    assert values(topic) == [b"b", b"c", b"d"]


def test_without_limits_records_stay(simulation: Simulation, cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="-1")
    topic.produce("a")
    simulation.pass_time(30 * 86_400)
    assert values(topic) == [b"a"]


def test_a_changed_retention_applies_to_older_records(simulation: Simulation, cluster: Cluster) -> None:
    topic = topic_with(cluster)
    topic.produce("a")
    simulation.pass_time(CHECK_S)
    assert values(topic) == [b"a"]
    simulation.pass_time(8 * 86_400)
    assert values(topic) == []


def test_the_cleaner_keeps_the_last_record_of_each_key(simulation: Simulation, cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs=COMPACT)
    for key, value in (("k", "1"), ("j", "1"), ("k", "2"), ("k", "3")):
        topic.produce((key, value))
    simulation.pass_time(CLEANER_S)
    # the active segment is not compacted, and its keys do not count
    assert [(record.offset, record.value) for record in topic.records()] == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_a_tombstone_goes_after_delete_retention_ms(simulation: Simulation, cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "delete.retention.ms": "60000"})
    for record in ({"key": "k", "value": "1"}, {"key": "k", "value": None}, ("j", "1")):
        topic.produce(record)
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [None, b"1"]
    simulation.pass_time(30)
    topic.produce(("j", "2"))
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [None, b"1", b"2"]
    simulation.pass_time(60)
    topic.produce(("j", "3"))
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [b"2", b"3"]


def test_a_log_is_compacted_only_if_it_is_dirty_enough(simulation: Simulation, cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "min.cleanable.dirty.ratio": "0.5"})
    for key in "abcd":
        topic.produce((key, "1"))
    simulation.pass_time(CLEANER_S)
    topic.produce(("a", "2"))
    topic.produce(("a", "3"))
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [b"1"] * 4 + [b"2", b"3"]
    topic.produce(("a", "4"))
    topic.produce(("a", "5"))
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [b"1"] * 3 + [b"4", b"5"]


def test_young_records_are_not_compacted(simulation: Simulation, cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "min.compaction.lag.ms": "60000"})
    for value in "123":
        topic.produce(("k", value))
    simulation.pass_time(45)
    assert values(topic) == [b"1", b"2", b"3"]
    simulation.pass_time(30)
    assert values(topic) == [b"2", b"3"]


def test_max_compaction_lag_ms_overrides_the_dirty_ratio(simulation: Simulation, cluster: Cluster) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": "60000"}
    topic = cluster.create_topic("t", configs=configs)
    topic.produce(("k", "1"))
    topic.produce(("k", "2"))
    simulation.pass_time(61)
    # begins a segment
    topic.produce(("k", "3"))
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [b"2", b"3"]


def test_a_topic_with_both_policies_is_compacted_and_expires(simulation: Simulation, cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": "60000"})
    for value in "123":
        topic.produce(("k", value))
    simulation.pass_time(CLEANER_S)
    assert values(topic) == [b"2", b"3"]
    simulation.pass_time(CHECK_S)
    assert values(topic) == []


def test_compact_removes_tombstones_and_older_records_at_once(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={"cleanup.policy": "compact"})
    topic.produce(("a", "1"), ("b", "1"), ("a", "2"), {"key": "b", "value": None})
    topic.compact()
    assert [(record.offset, record.value) for record in topic.records()] == [(2, b"2")]
    assert topic.partitions[0].end_offset == 4


def test_expire_records_moves_the_start_of_every_partition(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", 2, records=8)
    topic.expire_records(before=1)
    assert [record.offset for record in topic.records()] == [1, 2, 3] * 2
    topic.expire_records()
    assert topic.records() == []
    assert [partition.end_offset for partition in topic.partitions] == [4, 4]


def test_a_lever_does_only_what_the_policy_allows(cluster: Cluster) -> None:
    deleted, compacted = cluster.create_topic("d"), cluster.create_topic("c", configs={"cleanup.policy": "compact"})
    with pytest.raises(ValueError, match=r"'d' has cleanup.policy=delete: Kafka compacts it only with compact; create"):
        deleted.compact()
    with pytest.raises(ValueError, match=r"'c' has cleanup.policy=compact: Kafka expires records of it only with del"):
        compacted.expire_records()
    with pytest.raises(ValueError, match="before=-1: must be an offset, an integer from 0"):
        deleted.expire_records(before=-1)
