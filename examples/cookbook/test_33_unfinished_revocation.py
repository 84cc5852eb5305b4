"""A worker that does not poll during a long order does not finish its revocation, and a newcomer idles (KIP-848).

The members that keep their partitions go on, so nothing looks wrong but a member without work. Only `poll` gives
partitions up: until then the coordinator waits, for `max.poll.interval.ms`; then it removes the worker, and the order
is worked on twice. So work on a thread, and poll on with the partitions paused.

Evidence: https://github.com/apache/kafka/pull/15364, https://github.com/zio/zio-kafka/issues/686.
Reproduced by: a puppet that joins; `expire_revocation` for the five minutes of the timeout.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.koordinator(
    topics={"orders": 4},
    config={"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0},
)


def blocking(consumer, handle, stopped):
    while not stopped.is_set():
        order = consumer.poll(0.05)
        if order is not None:
            handle(order)


def polling(consumer, handle, stopped):
    with ThreadPoolExecutor(1) as pool:
        while not stopped.is_set():
            order = consumer.poll(0.05)
            if order is not None:
                done = pool.submit(handle, order)
                while not done.done():
                    consumer.pause(consumer.assignment())
                    consumer.poll(0.05)
                consumer.resume(consumer.assignment())


def work(config, loop, handle, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    try:
        loop(consumer, handle, stopped)
    finally:
        consumer.close()


@pytest.fixture
def joined(koordinator, start):
    """Return the group of a worker with a long order, when a peer joins."""
    begun, done = threading.Event(), threading.Event()

    def handle(_):
        begun.set()
        done.wait(30)

    def joined(loop):
        koordinator.produce("orders", [{"partition": 0, "value": "a long order"}])
        group = koordinator.group("svc")
        settings = {"group_id": "svc", "client_id": "worker", "auto_offset_reset": "earliest"}
        config = koordinator.client_config("confluent-kafka", group_protocol="consumer", **settings)
        start(work, config, loop, handle)
        assert begun.wait(30)
        group.create_puppet("peer", group_protocol="consumer").join()
        return group

    yield joined
    done.set()


def test_a_worker_that_does_not_poll_is_removed(joined):
    group = joined(blocking)
    assert [fired.kind for fired in group.expire_revocation("worker")] == ["revocation"]
    group.wait_stable(members=1, all_owned=True)
    assert [member.client_id for member in group.members] == ["peer"]


def test_a_worker_that_polls_gives_up_what_moves_and_keeps_its_order(joined):
    group = joined(polling)
    group.wait_stable(members=2, all_owned=True)
    (worker,) = [member for member in group.members if member.client_id == "worker"]
    assert 0 in worker.assignment["orders"]
