"""A record that no worker can read stops its partition: each restart reads it again, and the lag stands still.

The worker that crashes comes back at the committed offset, which is that of the record. The worker that skips it loses
it. Write it to a dead letter topic with its place, wait until it is there, and commit.

Evidence: https://github.com/confluentinc/ksql/issues/6563, https://github.com/spring-projects/spring-kafka/pull/4103,
https://github.com/SREGym/SREGym/pull/790.
Reproduced by: `produce` with bytes that are no JSON; `assert_committed` for the lag that goes on.
"""

import json
import queue

import pytest
from kafka import KafkaConsumer, KafkaProducer

pytestmark = pytest.mark.koordinator(topics={"orders": 1, "orders.dead": 1})


def crash(_, error):
    raise error


def dead_letter(producer):
    def keep(order, error):
        place = {"topic": order.topic, "offset": str(order.offset), "error": str(error)}
        headers = [(name, text.encode()) for name, text in place.items()]
        producer.send("orders.dead", key=order.key, value=order.value, headers=headers).get(10)

    return keep


def work(config, handled, on_poison, stopped):
    consumer = KafkaConsumer(**config)
    consumer.subscribe(["orders"])
    consumer.partitions_for_topic("orders")
    try:
        while not stopped.is_set():
            for orders in consumer.poll(100, max_records=1).values():
                for order in orders:
                    try:
                        handled.put(json.loads(order.value))
                    except ValueError as error:
                        on_poison(order, error)
                    consumer.commit()
    finally:
        consumer.close(autocommit=False)


@pytest.fixture
def begin(koordinator, start):
    """Return a function that starts the worker; of three orders the second is damaged."""
    koordinator.produce("orders", "1", b"\xff{", "3")
    settings = {"group_id": "svc", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    config = koordinator.client_config("kafka-python", **settings)
    return lambda handled, on_poison: start(work, config, handled, on_poison)


def test_each_restart_stops_at_the_same_record(koordinator, begin):
    for handled_before in ([1], []):
        handled = queue.Queue()
        with pytest.raises(ValueError, match="decode"):
            begin(handled, crash).result()
        assert list(handled.queue) == handled_before
        koordinator.group("svc").assert_committed({("orders", 0): 1})


def test_the_record_is_kept_aside_with_its_place(koordinator, begin):
    producer, handled = KafkaProducer(bootstrap_servers=koordinator.bootstrap_servers), queue.Queue()
    begin(handled, dead_letter(producer))
    koordinator.group("svc").assert_committed({("orders", 0): 3}, timeout=30)
    producer.close()
    assert list(handled.queue) == [1, 3]
    (dead,) = koordinator.records("orders.dead")
    assert (dead.value, dict(dead.headers)["offset"]) == (b"\xff{", b"1")
