"""A worker slower than `max.poll.interval.ms` has left its group (KIP-848), and ends at the errors that follow.

The commit of its order fails then with UNKNOWN_MEMBER_ID, and a `poll` may return an error in place of an order.
Neither is fatal: the next `poll` joins again. A worker that raises them ends, and no member has its partitions.

Evidence: https://github.com/confluentinc/confluent-kafka-python/issues/552,
https://github.com/apache/kafka/pull/14873, https://github.com/thomhurst/Dekaf/pull/1693.
Reproduced by: `evict(member, as_if="poll_timeout")`.
"""

import queue

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

pytestmark = pytest.mark.koordinator(
    topics={"orders": 1},
    config={"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0},
)

HAS_LEFT = {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.STALE_MEMBER_EPOCH, KafkaError._MAX_POLL_EXCEEDED}  # noqa: SLF001 - its name


def strict(error):
    raise KafkaException(error)


def patient(error):
    if error.code() not in HAS_LEFT:
        raise KafkaException(error)


def work(config, handle, on_error, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    try:
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is None:
                continue
            if order.error():
                on_error(order.error())
                continue
            handle(order.value())
            try:
                consumer.commit(order, asynchronous=False)
            except KafkaException as error:
                on_error(error.args[0])
    finally:
        consumer.close()


@pytest.fixture
def slow(koordinator, start):
    """Return the running worker, and its orders, when it has left the group while it handled the first one."""

    def slow(on_error):
        koordinator.produce("orders", "a")
        group, begun, done = koordinator.group("svc"), queue.Queue(), queue.Queue()

        def handle(order):
            begun.put(order)
            done.get(timeout=30)

        settings = {
            "group_id": "svc",
            "client_id": "svc-1",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        config = koordinator.client_config("confluent-kafka", group_protocol="consumer", **settings)
        running = start(work, config, handle, on_error)
        assert begun.get(timeout=30) == b"a"
        group.evict("svc-1", as_if="poll_timeout")
        for _ in "ab":
            done.put("done")
        return running, begun

    return slow


def test_a_worker_that_raises_every_error_ends(koordinator, slow):
    running, _ = slow(strict)
    with pytest.raises(KafkaException):
        running.result()
    assert koordinator.group("svc").state == "Empty"
    assert koordinator.group("svc").offsets == {}


def test_a_worker_that_polls_on_joins_again_and_repeats_the_order(koordinator, slow):
    _, begun = slow(patient)
    assert begun.get(timeout=30) == b"a"
    koordinator.group("svc").assert_committed({("orders", 0): 1}, timeout=30)
    koordinator.group("svc").wait_stable(members=1, all_owned=True)
