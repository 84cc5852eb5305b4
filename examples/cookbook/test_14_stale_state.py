"""State kept from an earlier ownership is stale when the partition returns: another member has moved it on.

A counting worker keeps its counts in memory and in a changelog. A partition moves from A to B and back: if A finds it
in memory and skips the changelog, it continues from its count before B.

Evidence: https://github.com/quixio/quix-streams/pull/1068, https://github.com/robinhood/faust/pull/542,
https://github.com/faust-streaming/faust/issues/629.
Reproduced by: a puppet that takes a partition and gives it back; `produce` and `set_offsets` for its work in between.
"""

import queue

import pytest
from confluent_kafka import Consumer, TopicPartition

pytestmark = pytest.mark.koordinator(topics={"orders": 1, "counts": 1})


class Counter:
    """Counts the orders of each partition."""

    def __init__(self, config, said):
        self.config, self.said, self.counts = config, said, {}

    def restore(self, partition):
        """Return the last count in the changelog."""
        reader = Consumer({**self.config, "group.id": "restore", "enable.partition.eof": True})
        reader.assign([TopicPartition("counts", partition, 0)])
        count = 0
        while (record := reader.poll(10)) and not record.error():
            count = int(record.value())
        reader.close()
        return count

    def on_assign(self, _, partitions):
        for partition in partitions:
            if partition.partition not in self.counts:
                self.counts[partition.partition] = self.restore(partition.partition)

    def on_revoke(self, _, partitions):
        pass

    def run(self, stopped):
        consumer = Consumer(self.config)
        consumer.subscribe(["orders"], on_assign=self.on_assign, on_revoke=self.on_revoke)
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is not None and not order.error():
                self.counts[order.partition()] += 1
                self.said.put(self.counts[order.partition()])
                consumer.commit(order, asynchronous=False)
        consumer.close()


class Forgetting(Counter):
    def on_revoke(self, _, partitions):
        for partition in partitions:
            del self.counts[partition.partition]


@pytest.fixture
def there_and_back(koordinator, start):
    """Return a counter's result after 1 order of its own and 4 of a peer."""

    def there_and_back(counter):
        group, said = koordinator.group("svc"), queue.Queue()
        settings = {"group_id": "svc", "group_instance_id": "b", "partition_assignment_strategy": "range"}
        start(counter(koordinator.client_config("confluent-kafka", **settings), said).run)
        koordinator.produce("orders", "1")
        assert said.get(timeout=10) == 1
        koordinator.produce("counts", "1")
        peer = group.create_puppet("peer", instance_id="a", topics=["orders"])
        peer.join()
        group.wait_stable(members=2).assert_assignment({"a": {"orders": [0]}, "b": {}})
        koordinator.produce("orders", "2", "3", "4", "5")
        koordinator.produce("counts", "5")
        group.set_offsets({("orders", 0): 5})
        peer.leave()
        group.wait_stable(members=1)
        koordinator.produce("orders", "6")
        return said.get(timeout=10)

    return there_and_back


def test_a_worker_that_keeps_its_state_continues_from_a_stale_count(there_and_back):
    assert there_and_back(Counter) == 2


def test_a_worker_that_drops_revoked_state_continues_from_the_changelog(there_and_back):
    assert there_and_back(Forgetting) == 6
