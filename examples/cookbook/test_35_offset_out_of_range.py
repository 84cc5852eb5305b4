"""A worker returns after the retention time: its offset no longer exists, and it skips the remaining records.

Its committed offset is below the start of the log: Fetch answers OFFSET_OUT_OF_RANGE, and `auto.offset.reset` decides.
The default `latest` jumps to the end, over records that still exist, and says nothing.

Evidence: https://github.com/confluentinc/confluent-kafka-dotnet/issues/2009,
https://github.com/spring-projects/spring-kafka/issues/1493, https://github.com/tulios/kafkajs/pull/1777.
Reproduced by: `expire_records(topic, before=…)`: the retention of a week passes now.
"""

import queue

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(topics={"orders": 1})


def work(config, handled, stopped):
    consumer = Consumer(config)
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
def first_order(koordinator, start):
    """Return a function that restarts the worker, and returns its first order. Order 2 and later ones still exist."""

    def first_order(reset):
        koordinator.produce("orders", "order-0", "order-1", "order-2")
        koordinator.group("svc").set_offsets({("orders", 0): 1})
        koordinator.expire_records("orders", before=2)
        handled = queue.Queue()
        settings = {"group_id": "svc", "auto_offset_reset": reset}
        start(work, koordinator.client_config("confluent-kafka", **settings), handled)
        koordinator.group("svc").wait_stable(members=1)
        for number in range(3, 30):
            try:
                return handled.get(timeout=0.5)
            except queue.Empty:
                koordinator.produce("orders", f"order-{number}")
        return None

    return first_order


@pytest.mark.parametrize(
    ("reset", "skips"), [pytest.param("latest", True, id="wrong"), pytest.param("earliest", False, id="right")]
)
def test_the_oldest_order_that_is_left_is_handled(first_order, reset, skips):
    order = first_order(reset)
    assert order is not None
    assert (order != b"order-2") == skips
