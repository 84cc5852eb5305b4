"""A partition can be revoked before its first record arrives; a revoke handler that relies on one raises an error.

State created on the first record of a partition (a buffer, a file, a worker) does not exist when two rebalances follow
each other.

Evidence: https://github.com/zio/zio-kafka/pull/1294, https://github.com/zio/zio-kafka/issues/280.
Reproduced by: a puppet that joins as soon as the worker owns its partitions, before there are records.
"""

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.koordinator(topics={"orders": 2})


class Hasty:
    def __init__(self):
        self.buffers = {}

    def on_revoke(self, _, partitions):
        for partition in partitions:
            self.flush(self.buffers.pop(partition.partition))

    def flush(self, orders):
        print(f"{len(orders)} orders written")

    def run(self, config, stopped):
        consumer = Consumer(config)
        consumer.subscribe(["orders"], on_revoke=self.on_revoke)
        try:
            while not stopped.is_set():
                order = consumer.poll(0.1)
                if order is not None and not order.error():
                    self.buffers.setdefault(order.partition(), []).append(order.value())
        finally:
            consumer.close()


class Unhurried(Hasty):
    def on_revoke(self, _, partitions):
        for partition in partitions:
            self.flush(self.buffers.pop(partition.partition, []))


@pytest.fixture
def revoked(koordinator, start):
    """Run a worker whose partitions are revoked before their first record."""

    def revoked(worker):
        group = koordinator.group("svc")
        running = start(worker.run, koordinator.client_config("confluent-kafka", group_id="svc"))
        group.wait_stable(members=1)
        group.create_puppet("peer").join()
        return running

    return revoked


def test_a_handler_that_relies_on_a_record_raises(revoked):
    running = revoked(Hasty())
    # confluent-kafka sometimes cannot propagate an exception from a callback
    with pytest.raises((KeyError, SystemError)):
        running.result()


def test_a_handler_without_assumptions_hands_over(koordinator, revoked):
    running = revoked(Unhurried())
    koordinator.group("svc").wait_stable(members=2).assert_owned_exactly_once(timeout=30)
    running.stop()
