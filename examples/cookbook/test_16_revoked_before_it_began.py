"""A partition may be taken away before its first record has come; a handler that counts on one fails in the callback.

What is made for each partition when its first record comes (a buffer, a file, a worker) is not there yet when two
rebalances follow each other.

Evidence: https://github.com/zio/zio-kafka/pull/1294, https://github.com/zio/zio-kafka/issues/280.
Lever: a puppet that joins as soon as the worker has its partitions, and before there are records.
"""

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.koordinator(topics={"orders": 2})


class Hasty:
    def __init__(self):
        self.buffers = {}

    def on_revoke(self, _, partitions):
        for each in partitions:
            self.flush(self.buffers.pop(each.partition))

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
        for each in partitions:
            self.flush(self.buffers.pop(each.partition, []))


@pytest.fixture
def revoked(koordinator, start):
    """A worker whose partitions are taken away before there was a record."""

    def revoked(worker):
        group = koordinator.group("svc")
        running = start(worker.run, koordinator.client_config("confluent-kafka", group_id="svc"))
        group.wait_stable(members=1)
        group.puppet("peer").join()
        return running

    return revoked


def test_who_counts_on_a_record_dies_in_the_callback(revoked):
    running = revoked(Hasty())
    # now and then confluent-kafka cannot hand on what a callback has raised
    with pytest.raises((KeyError, SystemError)):
        running.result()


def test_who_counts_on_nothing_shares_with_the_other(koordinator, revoked):
    running = revoked(Unhurried())
    koordinator.group("svc").wait_stable(members=2).assert_owned_exactly_once(timeout=30)
    running.stop()
