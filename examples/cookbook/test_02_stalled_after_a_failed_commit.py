"""A failed commit must not leave partitions paused: the consumer would keep sending heartbeats and read nothing.

Pause, work, commit, resume" skips the resume when the commit raises. Nothing is logged afterwards, the group is stable,
and the lag grows.

Evidence: https://github.com/confluentinc/librdkafka/issues/2933.
Reproduced by: a rule that answers one commit with an error.
"""

import logging
import queue

import pytest
from confluent_kafka import Consumer, KafkaException

from koordinator import faults

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

LOG = logging.getLogger(__name__)


def stalling(consumer, order, handled):
    consumer.pause(consumer.assignment())
    handled.put(order.value())
    try:
        consumer.commit(order, asynchronous=False)
        consumer.resume(consumer.assignment())
    except KafkaException as error:
        LOG.warning("the next commit will do: %s", error)


def going_on(consumer, order, handled):
    consumer.pause(consumer.assignment())
    handled.put(order.value())
    try:
        consumer.commit(order, asynchronous=False)
    except KafkaException as error:
        LOG.warning("the next commit will do: %s", error)
    finally:
        consumer.resume(consumer.assignment())


def work(config, handle, handled, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    while not stopped.is_set():
        order = consumer.poll(0.1)
        if order is not None and not order.error():
            handle(consumer, order, handled)
    consumer.close()


@pytest.fixture
def disturbed(koordinator, start):
    """Return the orders handled by a worker whose first commit fails."""

    def disturbed(handle):
        group, handled = koordinator.group("svc"), queue.Queue()
        rule = group.add_rule("OffsetCommit", faults.error("REBALANCE_IN_PROGRESS", at="partition"), once=True)
        config = koordinator.client_config("confluent-kafka", group_id="svc", enable_auto_commit=False)
        start(work, config, handle, handled)
        koordinator.produce("orders", "a")
        assert handled.get(timeout=10) == b"a"
        group.assert_request("OffsetCommit", error="REBALANCE_IN_PROGRESS", timeout=30)
        assert rule.hits == 1
        koordinator.produce("orders", "b")
        return handled

    return disturbed


def test_a_worker_that_does_not_resume_after_a_failed_commit_stalls(koordinator, disturbed):
    handled = disturbed(stalling)
    with pytest.raises(queue.Empty):
        handled.get(timeout=1)
    assert koordinator.group("svc").state == "Stable"


def test_a_worker_that_always_resumes_continues(koordinator, disturbed):
    assert disturbed(going_on).get(timeout=10) == b"b"
    koordinator.group("svc").assert_committed({("orders", 0): 2}, timeout=30)
