"""Retention and compaction by the configs of topics, in virtual time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator import Simulation
from koordinator.wire.errors import Error
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.handles.cluster import Cluster
    from koordinator.handles.topics import Topic

SMALL = "14"
"""The smallest `segment.bytes` up to 3.9: each batch is a segment."""

COMPACT = {"cleanup.policy": "compact", "segment.bytes": SMALL, "min.cleanable.dirty.ratio": "0"}

CHECK_S, CLEANER_S = 300, 15
"""The intervals of retention checks and of the cleaner."""

FIRST_CHECK_S = 30
"""The time from the start of a broker to its first retention check."""


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


def test_records_expire_at_the_first_check_after_retention_ms(cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="60000")
    topic.produce("a")
    cluster.pass_time(59)
    topic.produce("b")
    assert values(topic) == [b"a", b"b"]
    cluster.pass_time(2 * CHECK_S)
    assert values(topic) == []
    assert topic.partitions[0].end_offset == 2
    topic.produce("c")
    assert [record.offset for record in topic.records()] == [2]


def test_topics_inherit_the_configs_of_brokers() -> None:
    config = {"log.retention.hours": "1", "log.retention.minutes": "5", "log.segment.bytes": "14"}
    with Simulation(kafka_version="3.9", config=config) as cluster:
        inherited, own = cluster.create_topic("t"), cluster.create_topic("u", configs={"retention.ms": "-1"})
        for topic in (inherited, own):
            topic.produce("a")
        cluster.pass_time(2 * CHECK_S)
        assert values(inherited) == []
        assert values(own) == [b"a"]


def test_a_segment_expires_with_its_newest_record(cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="350000")
    topic.produce("a")
    cluster.pass_time(250)
    topic.produce("b")
    cluster.pass_time(CHECK_S)
    assert values(topic) == [b"a", b"b"]
    cluster.pass_time(CHECK_S)
    assert values(topic) == []


def test_only_whole_segments_expire(cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="300000", segment_ms="1000")
    topic.produce("a")
    cluster.pass_time(250)
    topic.produce("b")
    cluster.pass_time(CHECK_S)
    assert values(topic) == [b"b"]


def test_the_oldest_segments_beyond_retention_bytes_are_deleted(cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_bytes="150", segment_bytes=SMALL)
    for value in "abcd":
        topic.produce(value)
    cluster.pass_time(CHECK_S)
    # a batch has 69 bytes; a log never becomes smaller than the limit
    assert values(topic) == [b"b", b"c", b"d"]


@pytest.mark.slow
def test_without_limits_records_stay(cluster: Cluster) -> None:
    topic = topic_with(cluster, retention_ms="-1")
    topic.produce("a")
    cluster.pass_time(30 * 86_400)
    assert values(topic) == [b"a"]


@pytest.mark.parametrize(("profile", "left"), [("kafka-defaults", []), ("fast", [b"a"])])
def test_without_a_configured_retention_records_expire_after_seven_days_unless_the_profile_is_fast(
    profile: str, left: list[bytes]
) -> None:
    with Simulation(profile=profile) as cluster:
        topic = topic_with(cluster)
        topic.produce("a")
        cluster.pass_time(7 * 86_400)
        assert values(topic) == [b"a"]
        cluster.pass_time(CHECK_S)
        assert values(topic) == left


def old(value: str) -> dict[str, object]:
    """Return a record with a timestamp of long ago."""
    return {"value": value, "timestamp": 1_000}


@pytest.mark.parametrize("started_ms", [0, 1, 299_999, 123_456])
def test_retention_is_checked_30_s_after_the_start_of_a_broker_and_then_at_its_interval(
    started_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koordinator.handles.simulation.BEGIN_MS", 1_700_000_100_000 + started_ms)
    with Simulation(profile="kafka-defaults") as cluster:
        topic = topic_with(cluster)
        for due_s in (FIRST_CHECK_S, CHECK_S, CHECK_S):
            topic.produce(old("a"))
            cluster.pass_time(due_s - 0.001)
            assert values(topic) == [b"a"]
            cluster.pass_time(0.001)
            assert values(topic) == []
        cluster.nodes[1].kill()
        cluster.pass_time(100)
        cluster.nodes[1].start()
        topic.produce(old("b"))
        cluster.pass_time(FIRST_CHECK_S - 0.001)
        assert values(topic) == [b"b"]
        cluster.pass_time(0.001)
        assert values(topic) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_cleaner_runs_at_its_backoff_whatever_else_is_written(seed: int) -> None:
    chance = random.Random(seed)
    with Simulation(kafka_version="3.9", brokers=2) as cluster:
        policies = chance.sample(["delete", "compact", "delete", "compact,delete"], 4)
        topics = {
            cluster.create_topic(f"t{at}", 2, configs={**COMPACT, "cleanup.policy": policy}): policy
            for at, policy in enumerate(policies)
        }
        for _ in range(4):
            for topic in chance.sample([*topics], 4):
                for value in "123":
                    topic.produce({"key": "k", "value": value, "partition": chance.randrange(2)})
                cluster.pass_time(0.1)
            cluster.pass_time(CLEANER_S)
            for topic, policy in topics.items():
                # of each partition the last closed segment with the key, and the active one
                assert policy == "delete" or len(topic.records()) <= 4
            cluster.pass_time(chance.randrange(60))


@pytest.mark.parametrize("seed", range(3))
def test_a_topic_that_becomes_compacted_is_cleaned_at_the_next_run_of_the_cleaner(seed: int) -> None:
    chance = random.Random(seed)
    durable = DurableCluster(DIR, CrashingFiles(), brokers=2, kafka_version="3.9", log_segment_bytes=14)
    began = durable.now
    durable.create("t", partitions=1)
    leader = durable.node.cluster.topics["t"].leader(0)
    durable.client = durable.connect(leader)
    for value in (b"1", b"2", b"3"):
        assert durable.produce("t", value, key=b"k") is Error.NONE
    durable.now += chance.randrange(20_000)
    durable.settle()
    durable.client = durable.connect(chance.choice([1, 2]))
    row = AlterableConfig(name="cleanup.policy", config_operation=0, value="compact")
    ratio = AlterableConfig(name="min.cleanable.dirty.ratio", config_operation=0, value="0")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(row, ratio))
    durable.exchange(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    durable.client = durable.connect(leader)
    durable.now += CLEANER_S * 1000 - (durable.now - began) % (CLEANER_S * 1000) - 1
    durable.settle()
    assert durable.values("t") == [b"1", b"2", b"3"]
    durable.now += 1
    durable.settle()
    assert durable.values("t") == [b"2", b"3"]


def test_the_cleaner_keeps_the_last_record_of_each_key(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs=COMPACT)
    for key, value in (("k", "1"), ("j", "1"), ("k", "2"), ("k", "3")):
        topic.produce((key, value))
    cluster.pass_time(CLEANER_S)
    # the active segment is not compacted, and its keys do not count
    assert [(record.offset, record.value) for record in topic.records()] == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_a_tombstone_goes_after_delete_retention_ms(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "delete.retention.ms": "60000"})
    for record in ({"key": "k", "value": "1"}, {"key": "k", "value": None}, ("j", "1")):
        topic.produce(record)
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [None, b"1"]
    cluster.pass_time(30)
    topic.produce(("j", "2"))
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [None, b"1", b"2"]
    cluster.pass_time(60)
    topic.produce(("j", "3"))
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [b"2", b"3"]


def test_a_log_is_compacted_only_if_it_is_dirty_enough(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "min.cleanable.dirty.ratio": "0.5"})
    for key in "abcd":
        topic.produce((key, "1"))
    cluster.pass_time(CLEANER_S)
    topic.produce(("a", "2"))
    topic.produce(("a", "3"))
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [b"1"] * 4 + [b"2", b"3"]
    topic.produce(("a", "4"))
    topic.produce(("a", "5"))
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [b"1"] * 3 + [b"4", b"5"]


def test_young_records_are_not_compacted(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "min.compaction.lag.ms": "60000"})
    for value in "123":
        topic.produce(("k", value))
    cluster.pass_time(45)
    assert values(topic) == [b"1", b"2", b"3"]
    cluster.pass_time(30)
    assert values(topic) == [b"2", b"3"]


def test_max_compaction_lag_ms_overrides_the_dirty_ratio(cluster: Cluster) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": "60000"}
    topic = cluster.create_topic("t", configs=configs)
    topic.produce(("k", "1"))
    topic.produce(("k", "2"))
    cluster.pass_time(61)
    # begins a segment
    topic.produce(("k", "3"))
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [b"2", b"3"]


def test_a_topic_with_both_policies_is_compacted_and_expires(cluster: Cluster) -> None:
    topic = cluster.create_topic("t", configs={**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": "60000"})
    for value in "123":
        topic.produce(("k", value))
    cluster.pass_time(CLEANER_S)
    assert values(topic) == [b"2", b"3"]
    cluster.pass_time(CHECK_S)
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
