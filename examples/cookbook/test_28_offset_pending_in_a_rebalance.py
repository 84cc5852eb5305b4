"""After a rebalance a consumer that accepts unstable offsets starts below a commit that is pending, and repeats work.

The offsets of a transaction count once its marker is written. A new owner of the partition must wait for that:
OffsetFetch with `require_stable` gets UNSTABLE_OFFSET_COMMIT until then (KIP-447), and the client asks again.
librdkafka requires stable offsets with `isolation.level=read_committed` only.

Evidence: https://github.com/confluentinc/librdkafka/pull/3272, https://github.com/redpanda-data/redpanda/issues/6423.
Reproduced by: `hold("WriteTxnMarkers")` after a commit of `create_producer(name)`, a scripted producer.
"""

import queue

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.koordinator(topics={"orders": 1})


def work(config, handled, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    while not stopped.is_set():
        order = consumer.poll(0.1)
        if order is not None and not order.error():
            handled.put(order.value())
    consumer.close()


@pytest.fixture
def taken_over(koordinator, start):
    """Return what a worker handles that joins while the commit of the first order is pending."""
    koordinator.produce("orders", "a", "b")
    group = koordinator.group("svc")
    group.set_offsets({("orders", 0): 0})
    producer = koordinator.create_producer("former-owner").init().send_offsets("svc", {("orders", 0): 1})

    def taken_over(isolation_level):
        handled = queue.Queue()
        config = koordinator.client_config(
            "confluent-kafka", group_id="svc", isolation_level=isolation_level, enable_auto_commit=False
        )
        with koordinator.transaction("former-owner").hold("WriteTxnMarkers") as hold:
            producer.commit()
            hold.wait_entered()
            assert group.pending_offsets == {("orders", 0): 1}
            start(work, config, handled)
            group.wait_stable(members=1)
            group.assert_request("OffsetFetch", timeout=10)
            if isolation_level == "read_uncommitted":
                assert handled.get(timeout=10) == b"a"
        return handled

    return taken_over


def test_a_consumer_of_unstable_offsets_repeats_an_order(taken_over):
    # the order that the former owner has handled was read while its commit was pending
    assert taken_over("read_uncommitted").get(timeout=10) == b"b"


def test_a_consumer_of_stable_offsets_waits_for_the_commit(koordinator, taken_over):
    assert taken_over("read_committed").get(timeout=10) == b"b"
    assert koordinator.group("svc").offsets == {("orders", 0): 1}
