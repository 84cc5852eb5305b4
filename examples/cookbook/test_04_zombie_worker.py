"""A worker slower than `max.poll.interval.ms` leaves its group, and keeps working on partitions with new owners.

The new owners handle the same orders, so every effect happens twice; Kafka only refuses the worker's commits. The
client reports the loss in a callback, but only `poll` runs callbacks, and the worker does not poll.

Evidence: https://github.com/confluentinc/librdkafka/pull/5604, https://github.com/robinhood/faust/issues/517.
Reproduced by: `evict(member, as_if="poll_timeout")`; `assert_request`.
"""

import logging
import queue

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

LOG = logging.getLogger(__name__)


def zombie(consumer, handle, stopped):
    consumer.subscribe(["orders"])
    while not stopped.is_set():
        for order in consumer.consume(3, 0.5):
            handle(order)


def careful(consumer, handle, stopped):
    owned = set()
    consumer.subscribe(
        ["orders"],
        on_assign=lambda _, partitions: owned.update(partition.partition for partition in partitions),
        on_revoke=lambda _, partitions: owned.difference_update(partition.partition for partition in partitions),
    )
    while not stopped.is_set():
        for order in consumer.consume(3, 0.5):
            # a poll with all partitions paused returns no order, but runs the callbacks
            consumer.pause(consumer.assignment())
            consumer.poll(0)
            consumer.resume(consumer.assignment())
            if order.partition() in owned:
                handle(order)


def work(config, loop, effects, slow, stopped):
    consumer = Consumer(config)

    def handle(order):
        effects.put(order.value())
        slow.get(timeout=10)
        try:
            consumer.commit(order, asynchronous=False)
        except KafkaException as error:
            LOG.warning("not committed: %s", error)

    loop(consumer, handle, stopped)
    consumer.close()


@pytest.fixture
def timed_out(koordinator, start):
    """Return the effects of a worker that was removed while it worked on the first of three orders."""

    def timed_out(loop):
        group, effects, slow = koordinator.group("svc"), queue.Queue(), queue.Queue()
        koordinator.produce("orders", "a", "b", "c")
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        start(work, koordinator.client_config("confluent-kafka", **settings), loop, effects, slow)
        assert effects.get(timeout=10) == b"a"
        group.evict("svc-1", as_if="poll_timeout")
        group.create_puppet("peer").join()
        group.wait_stable(members=1)
        for _ in "abc":
            slow.put("done")
        group.assert_request("OffsetCommit", error="UNKNOWN_MEMBER_ID", timeout=30)
        return effects

    return timed_out


def test_a_zombie_handles_orders_of_other_members(koordinator, timed_out):
    effects = timed_out(zombie)
    assert [effects.get(timeout=10) for _ in "bc"] == [b"b", b"c"]
    koordinator.group("svc").assert_request("OffsetCommit", error="UNKNOWN_MEMBER_ID", times=3, timeout=30)


def test_a_worker_that_checks_its_ownership_stops_at_once(koordinator, timed_out):
    effects = timed_out(careful)
    koordinator.group("svc").wait_stable(members=2)
    assert effects.empty()
