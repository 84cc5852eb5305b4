"""A topic gets a partition whose first records are lost: the consumer learns of it late, and starts at the end.

A consumer asks for the partitions of its topics every few minutes (`metadata.max.age.ms`), a producer more often. With
`auto.offset.reset=latest` a partition without a commit begins where the log ends when the consumer finds it. With
`earliest` it begins at its first record, and partitions with a commit go on as before.

Evidence: https://github.com/apache/kafka/pull/22784, https://github.com/getsentry/sentry/pull/68664,
https://github.com/IBM/sarama/issues/1739.
Reproduced by: `add_partitions(topic, …)` and records that are there before the consumer looks again.
"""

import queue

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(topics={"orders": 1})


def work(config, handled, stopped):
    consumer = Consumer(config | {"topic.metadata.refresh.interval.ms": 1000})
    consumer.subscribe(["orders"])
    try:
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is None:
                continue
            if order.error():
                raise KafkaException(order.error())
            handled.put(order.value())
    finally:
        consumer.close()


@pytest.fixture
def orders_of_the_new_partition(koordinator, start):
    """Return a function that starts a worker, adds a partition with an order, and produces until one is handled."""

    def orders_of_the_new_partition(reset):
        group, handled = koordinator.group("svc"), queue.Queue()
        group.set_offsets({("orders", 0): 0})
        settings = {"group_id": "svc", "client_id": "svc-1", "auto_offset_reset": reset}
        start(work, koordinator.client_config("confluent-kafka", **settings), handled)
        group.wait_stable(members=1, all_owned=True)
        koordinator.add_partitions("orders", 1)
        koordinator.produce("orders", [{"partition": 1, "value": "order-0"}])
        group.wait_stable(members=1, all_owned=True, timeout=60)
        for number in range(1, 60):
            koordinator.produce("orders", [{"partition": 1, "value": f"order-{number}"}])
            try:
                return handled.get(timeout=0.5)
            except queue.Empty:
                continue
        return None

    return orders_of_the_new_partition


@pytest.mark.parametrize(
    ("reset", "is_lost"), [pytest.param("latest", True, id="wrong"), pytest.param("earliest", False, id="right")]
)
def test_the_first_order_of_a_new_partition_is_handled(orders_of_the_new_partition, reset, is_lost):
    first = orders_of_the_new_partition(reset)
    assert first is not None
    assert (first != b"order-0") == is_lost
