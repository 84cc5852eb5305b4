"""Tests of a service with a consumer, as a user writes them: every name comes from `koordinator`."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from koordinator import (
    Cluster,
    ClusterFactory,
    Emulator,
    Group,
    GroupTimeout,
    InvalidSetting,
    Member,
    Puppet,
    RefusedError,
    Rule,
    StoredRecord,
    Topic,
    faults,
)

pytestmark = pytest.mark.koordinator(topics={"orders": 4})


@pytest.fixture
def group(koordinator: Cluster) -> Group:
    return koordinator.group("orders-svc")


@pytest.fixture
def peer(group: Group) -> Puppet:
    return group.create_puppet("peer", topics=["orders"], session_timeout="10s")


def test_settings_of_a_consumer_are_merged(koordinator: Cluster) -> None:
    config = koordinator.client_config("confluent-kafka") | {"group.id": "orders-svc", "enable.auto.commit": False}
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    assert consumer.poll(0) is None
    consumer.close()


@pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")
def test_settings_are_keyword_arguments(koordinator: Cluster) -> None:
    from kafka import KafkaConsumer  # noqa: PLC0415 - its import warns

    consumer = KafkaConsumer(**koordinator.client_config("kafka-python", group_id="orders-svc"))
    assert consumer.topics() >= {"orders"}
    consumer.close()


def test_settings_are_a_dict_of_any(koordinator: Cluster) -> None:
    config: dict[str, Any] = koordinator.client_config("java", group_id="orders-svc")
    assert config["group.id"] == "orders-svc"


def test_a_producer_writes_what_the_topic_has(koordinator: Cluster) -> None:
    producer = Producer({"bootstrap.servers": koordinator.bootstrap_servers})
    producer.produce("orders", b"one", partition=2)
    producer.flush(30)
    records: list[StoredRecord] = koordinator.records("orders")
    assert [(record.partition, record.value) for record in records] == [(2, b"one")]


def test_a_topic_is_created_with_records(koordinator: Cluster) -> None:
    topic: Topic = koordinator.create_topic("audit", records=["a", ("key", "b")])
    assert [record.key for record in topic.records()] == [None, b"key"]
    with pytest.raises(RefusedError):
        koordinator.create_topic("audit")


def test_a_member_owns_every_partition(group: Group, peer: Puppet) -> None:
    peer.join()
    group.wait_stable(members=1, all_owned=True, timeout="20s").assert_owned_exactly_once(["orders"])
    member: Member = group.members[0]
    assert member.assignment == {"orders": [0, 1, 2, 3]}
    assert member.session_timeout_ms == 10_000


def test_a_wait_that_is_too_long_is_a_timeout(group: Group) -> None:
    with pytest.raises(TimeoutError):
        group.wait_stable(members=1, timeout="10ms")
    with pytest.raises(GroupTimeout, match="not stable with 1 member"):
        group.wait_stable(members=1, timeout=0.01)


def test_a_setting_that_kafka_refuses_is_refused(koordinator_factory: ClusterFactory) -> None:
    with pytest.raises(pytest.UsageError, match=r"group\.max\.size"):
        koordinator_factory(config={"group.max.size": 0})
    with pytest.raises(InvalidSetting, match=r"group\.max\.size"):
        Emulator(config={"group.max.size": 0}).start()


def test_two_clusters_are_apart(koordinator: Cluster, koordinator_factory: ClusterFactory) -> None:
    other: Cluster = koordinator_factory(topics={"payments": 1})
    other.create_topic("audit")
    assert "audit" not in [topic.name for topic in koordinator.topics()]


def test_a_commit_is_refused_once(group: Group, peer: Puppet) -> None:
    peer.join().wait_state("stable")
    rule: Rule
    with group.add_rule("OffsetCommit", faults.error("REBALANCE_IN_PROGRESS"), once=True) as rule:
        assert peer.commit({("orders", 0): 1}).error == "REBALANCE_IN_PROGRESS"
        assert peer.commit({("orders", 0): 1}).error is None
    assert rule.hits == 1
    group.assert_committed({("orders", 0): 1})
