"""A partition that has come back has moved on elsewhere: state that was kept from the first time is out of date.

A worker that counts keeps its counts in memory and in a changelog. A to B and back to A: who finds the partition in
its memory, and so does not read the changelog, counts on from what it knew before B.

Evidence: https://github.com/quixio/quix-streams/pull/1068, https://github.com/robinhood/faust/pull/542,
https://github.com/faust-streaming/faust/issues/629.
Lever: a puppet takes a partition away and gives it back; `produce` and `set_offsets` for what it did with it.
"""

import queue

import pytest
from confluent_kafka import Consumer, TopicPartition

pytestmark = pytest.mark.koordinator(topics={"orders": 1, "counts": 1})


class Counter:
    """How many orders there were in each partition."""

    def __init__(self, config, said):
        self.config, self.said, self.counts = config, said, {}

    def restore(self, partition):
        """The last count in the changelog."""
        reader = Consumer({**self.config, "group.id": "restore", "enable.partition.eof": True})
        reader.assign([TopicPartition("counts", partition, 0)])
        count = 0
        while (record := reader.poll(10)) and not record.error():
            count = int(record.value())
        reader.close()
        return count

    def on_assign(self, _, partitions):
        for each in partitions:
            if each.partition not in self.counts:
                self.counts[each.partition] = self.restore(each.partition)

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
        for each in partitions:
            del self.counts[each.partition]


@pytest.fixture
def there_and_back(koordinator, start):
    """What a counter says after 1 order of its own and 4 of a peer's."""

    def there_and_back(counter):
        group, said = koordinator.group("svc"), queue.Queue()
        settings = {"group_id": "svc", "group_instance_id": "b", "partition_assignment_strategy": "range"}
        start(counter(koordinator.client_config("confluent-kafka", **settings), said).run)
        koordinator.produce("orders", "1")
        assert said.get(timeout=10) == 1
        koordinator.produce("counts", "1")
        peer = group.puppet("peer", instance_id="a", topics=["orders"])
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


def test_who_keeps_its_state_counts_on_from_the_past(there_and_back):
    assert there_and_back(Counter) == 2


def test_who_forgets_what_is_taken_away_counts_on_from_the_changelog(there_and_back):
    assert there_and_back(Forgetting) == 6
