"""A transaction with the bare group id commits even after a rebalance, and the new owner repeats its work.

The coordinator can refuse offsets of a former generation only if they carry the member's metadata (KIP-447). With the
bare group id it accepts them from anybody, and both owners of the partition write their result.

Evidence: https://github.com/dpkp/kafka-python/pull/2984, https://github.com/apache/kafka/pull/8325.
Reproduced by: a puppet that joins in the middle of a transaction, and `expire_join_phase`.
"""

import queue

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

pytestmark = pytest.mark.koordinator(topics={"orders": 1, "invoices": 1})


def work(config, servers, identity, received, go_on, results):
    consumer = KafkaConsumer("orders", **config)
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="svc-1", client_id="svc-1")
    producer.init_transactions()
    order = next(consumer)
    metadata = identity(consumer)
    producer.begin_transaction()
    producer.send("invoices", order.value, partition=0).get(10)
    received.put(order.value)
    go_on.get(timeout=10)
    offsets = {TopicPartition("orders", 0): OffsetAndMetadata(order.offset + 1, "", -1)}
    try:
        producer.send_offsets_to_transaction(offsets, metadata)
        producer.commit_transaction()
        results.put("committed")
    except KafkaError as error:
        producer.abort_transaction()
        results.put(type(error).__name__)
    producer.close(5)
    consumer.close()


@pytest.fixture
def rebalanced(koordinator, start):
    """Return the result of a worker that lost its partition in the middle of a transaction."""

    def rebalanced(identity):
        group, received, go_on, results = koordinator.group("svc"), queue.Queue(), queue.Queue(), queue.Queue()
        koordinator.produce("orders", "a")
        config = koordinator.client_config("kafka-python", group_id="svc", client_id="svc-1", enable_auto_commit=False)
        start(lambda *args: work(*args[:-1]), config, koordinator.bootstrap_servers, identity, received, go_on, results)
        assert received.get(timeout=20) == b"a"
        group.create_puppet("peer", topics=["orders"]).join()
        group.expire_join_phase()
        assert group.wait_stable(members=1).members[0].client_id == "peer"
        go_on.put("now")
        return results.get(timeout=20)

    return rebalanced


def test_offsets_of_the_bare_group_are_committed_by_a_former_owner(koordinator, rebalanced):
    assert rebalanced(lambda _: "svc") == "committed"
    koordinator.group("svc").assert_committed({("orders", 0): 1}, timeout=10)


def test_offsets_of_a_member_are_refused_after_the_rebalance(koordinator, rebalanced):
    assert rebalanced(KafkaConsumer.group_metadata) != "committed"
    koordinator.transaction("svc-1").wait_state("CompleteAbort")
    assert koordinator.group("svc").offsets == {}
    koordinator.assert_no_open_transactions()
