"""Cooperative assignors pass only differences to callbacks; a handler that expects all partitions forgets the rest.

The habit of an eager consumer, "on_assign: these are my partitions", drops the orders of every partition that has not
moved. For the same reason librdkafka rejects `assign` in place of `incremental_assign`.

Evidence: https://github.com/confluentinc/confluent-kafka-python/issues/1040,
https://github.com/mfontanini/cppkafka/issues/321, https://github.com/confluentinc/confluent-kafka-python/pull/2248.
Reproduced by: a puppet that joins and leaves: a cooperative rebalance each time.
"""

import queue

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.koordinator(topics={"orders": 4})


class Eager:
    def __init__(self):
        self.owned, self.handled = set(), queue.Queue()

    def on_assign(self, _, partitions):
        self.owned = {partition.partition for partition in partitions}

    def on_revoke(self, _, partitions):
        self.owned = set()

    def run(self, config, stopped):
        consumer = Consumer(config)
        consumer.subscribe(["orders"], on_assign=self.on_assign, on_revoke=self.on_revoke)
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is not None and not order.error() and order.partition() in self.owned:
                self.handled.put(order.partition())
        consumer.close()


class Incremental(Eager):
    def on_assign(self, _, partitions):
        self.owned |= {partition.partition for partition in partitions}

    def on_revoke(self, _, partitions):
        self.owned -= {partition.partition for partition in partitions}


@pytest.fixture
def handled(koordinator, start):
    """Return the orders of a worker with four partitions, two of which a peer owned for a while."""

    def handled(worker):
        group, cooperative = koordinator.group("svc"), "cooperative-sticky"
        settings = {"group_id": "svc", "partition_assignment_strategy": cooperative}
        start(worker.run, koordinator.client_config("confluent-kafka", **settings))
        group.wait_stable(members=1)
        peer = group.create_puppet("peer", protocols=[cooperative]).join()
        group.wait_stable(members=2).assert_owned_exactly_once(timeout=30)
        peer.leave()
        group.wait_stable(members=1).assert_owned_exactly_once(timeout=30)
        koordinator.produce("orders", *({"partition": number, "value": "order"} for number in range(4)))
        return worker.handled

    return handled


def test_treating_the_difference_as_everything_drops_half_of_the_orders(handled):
    orders = handled(Eager())
    assert len({orders.get(timeout=10) for _ in range(2)}) == 2
    with pytest.raises(queue.Empty):
        orders.get(timeout=0.5)


def test_adding_and_removing_partitions_handles_all_orders(handled):
    orders = handled(Incremental())
    assert {orders.get(timeout=10) for _ in range(4)} == {0, 1, 2, 3}
