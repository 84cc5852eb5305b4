"""Transactional producers of the real clients: commit, abort, offsets in a transaction, fencing (KIP-98, KIP-447)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from clients.consumers import KINDS, Members, wait_until
from clients.transactional import WAIT_S, transactional
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from koordinator.emulator.core.data.topic import TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 2, "in": 1})

BROKERS = [pytest.param(number, marks=pytest.mark.koordinator(brokers=number)) for number in (1, 3)]
RELEASES = [
    pytest.param(release, marks=pytest.mark.koordinator(kafka_version=release)) for release in ("4.4", "3.9", "2.8")
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("_brokers", BROKERS)
def test_read_committed_consumers_get_the_records_of_committed_transactions_only(
    koordinator: Cluster, join: Members, kind: str, _brokers: int
) -> None:
    with closing(transactional(kind, koordinator.bootstrap_servers, "x")) as producer:
        for value, is_commit in ((b"first", True), (b"never", False), (b"last", True)):
            producer.begin()
            for partition in (0, 1):
                producer.send("t", value, partition)
            (producer.commit if is_commit else producer.abort)()
    member = join(kind, isolation_level="read_committed")
    wait_until("the committed records", lambda: len(member.records) >= 4, member)
    assert sorted(member.values) == [b"first", b"first", b"last", b"last"]
    koordinator.assert_transactions_isolated()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("_release", RELEASES)
def test_offsets_of_a_transaction_are_committed_with_it(koordinator: Cluster, kind: str, _release: str) -> None:
    koordinator.produce("in", [b"a", b"b", b"c"])
    with closing(transactional(kind, koordinator.bootstrap_servers, "x")) as producer:
        producer.begin()
        producer.send("t", b"1")
        producer.send_offsets({("in", 0): 2}, "g")
        producer.commit()
        wait_until("the commit", lambda: koordinator.group("g").offsets == {("in", 0): 2})
        producer.begin()
        producer.send("t", b"2")
        producer.send_offsets({("in", 0): 3}, "g")
        producer.abort()
    assert koordinator.group("g").offsets == {("in", 0): 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_producer_with_the_id_fences_the_first(koordinator: Cluster, kind: str) -> None:
    first = transactional(kind, koordinator.bootstrap_servers, "x")
    first.begin()
    first.send("t", b"zombie")
    with closing(transactional(kind, koordinator.bootstrap_servers, "x")) as second:
        with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
            first.commit()
        second.begin()
        second.send("t", b"alive")
        second.commit()
    with suppress(Exception):
        # some clients tell again at the end that they were fenced
        first.close()
    assert [event["body"]["producer_epoch"] for event in koordinator.events() if event["kind"] == "transaction"][
        -1
    ] >= 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.koordinator(brokers=2, config={"transaction.state.log.num.partitions": 1})
def test_a_commit_follows_its_coordinator_to_another_broker(koordinator: Cluster, kind: str) -> None:
    with closing(transactional(kind, koordinator.bootstrap_servers, "x")) as producer, ThreadPoolExecutor(1) as pool:
        producer.begin()
        producer.send("t", b"once")
        with koordinator.hold("EndTxn") as hold:
            commit = pool.submit(producer.commit)
            koordinator.move_leader(TRANSACTIONS_TOPIC, 0, 3 - hold.wait_entered().node)
        commit.result(WAIT_S)
    koordinator.transaction("x").wait_state("CompleteCommit")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.koordinator(brokers=3)
def test_a_commit_survives_the_death_of_its_coordinator(koordinator: Cluster, kind: str) -> None:
    with closing(transactional(kind, koordinator.bootstrap_servers, "x")) as producer, ThreadPoolExecutor(1) as pool:
        producer.begin()
        producer.send("t", b"once")
        with koordinator.hold("EndTxn") as hold:
            commit = pool.submit(producer.commit)
            coordinator = koordinator.nodes[hold.wait_entered().node]
            coordinator.kill()
        commit.result(WAIT_S)
        coordinator.start()
    koordinator.transaction("x").wait_state("CompleteCommit")


def test_a_member_that_was_removed_commits_in_no_transaction(koordinator: Cluster) -> None:
    """Of the Python clients only confluent-kafka names the member and its generation."""
    koordinator.produce("in", [b"a"])
    config = {"bootstrap.servers": koordinator.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(config | {"enable.auto.commit": False})
    consumer.subscribe(["in"])
    assert consumer.consume(1, WAIT_S)
    member = consumer.consumer_group_metadata()
    group = koordinator.group("g")
    group.evict(group.members[0], as_if="session")
    producer = Producer({"bootstrap.servers": koordinator.bootstrap_servers, "transactional.id": "x"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("t", b"twice")
    with pytest.raises(KafkaException) as refused:
        producer.send_offsets_to_transaction([TopicPartition("in", 0, 1)], member, WAIT_S)
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(WAIT_S)
    assert group.offsets == {}
    consumer.close()


@pytest.mark.koordinator(brokers=3)
def test_a_snapshot_continues_an_open_transaction(koordinator: Cluster, join: Members) -> None:
    with closing(transactional("kafka-python", koordinator.bootstrap_servers, "x")) as producer:
        producer.begin()
        producer.send("t", b"kept")
        producer.send_offsets({("in", 0): 1}, "g")
        document = koordinator.snapshot()
        producer.send("t", b"gone")
        koordinator.restore(document)
        assert koordinator.group("g").offsets == {}
        producer.commit()
    wait_until("the commit", lambda: koordinator.group("g").offsets == {("in", 0): 1})
    member = join("confluent-kafka", isolation_level="read_committed")
    wait_until("the committed record", lambda: len(member.records) >= 1, member)
    assert member.values == [b"kept"]
