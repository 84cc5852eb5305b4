"""A moving coordinator answers COORDINATOR_LOAD_IN_PROGRESS for seconds, and a consumer should survive that.

The move needs no rebalance. But librdkafka passes the error to the committing application without marking it retriable,
and a worker that treats it as fatal crashes with all its siblings whenever a broker restarts.

Evidence: https://github.com/getsentry/arroyo/pull/487, https://github.com/confluentinc/librdkafka/issues/3396,
https://github.com/thomhurst/Dekaf/issues/2249.
Reproduced by: `move_coordinator(group, to=…, load=…)`.
"""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

PASSES = {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}


def commit(consumer, order):
    consumer.commit(order, asynchronous=False)


def commit_in_the_end(consumer, order):
    for _ in range(20):
        try:
            return consumer.commit(order, asynchronous=False)
        except KafkaException as error:
            # librdkafka backs off between its own retries
            if error.args[0].code() not in PASSES:
                raise
    raise SystemExit("the group has no coordinator")


def work(config, commit, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    try:
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is not None and not order.error():
                commit(consumer, order)
    finally:
        consumer.close()


@pytest.fixture
def moved(koordinator, start):
    """Run a worker that receives an order while its coordinator moves."""

    def moved(commit, load):
        running = start(work, koordinator.client_config("confluent-kafka", group_id="svc"), commit)
        # it knows its position and has nothing to do
        koordinator.group("svc").assert_request("OffsetFetch", error="NONE", timeout=30)
        koordinator.move_coordinator("svc", to=1, load=load)
        koordinator.produce("orders", "a")
        return running

    return moved


def test_a_worker_that_treats_the_error_as_fatal_crashes(moved):
    running = moved(commit, load=10)
    with pytest.raises(KafkaException, match="COORDINATOR_LOAD_IN_PROGRESS"):
        running.result()


def test_a_worker_that_retries_succeeds_without_a_rebalance(koordinator, moved):
    group = koordinator.group("svc")
    moved(commit_in_the_end, load=0.5)
    group.assert_committed({("orders", 0): 1}, timeout=30)
    assert (group.state, group.generation) == ("Stable", 1)
