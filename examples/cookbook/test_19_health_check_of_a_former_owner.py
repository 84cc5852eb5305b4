"""A health check that remembers positions of revoked partitions reports a healthy worker as stuck.

Partition 0 has more records, and the position has not moved": another member reads it now. Killing the worker causes
the next rebalance, and the next false report.

Evidence: https://blog.cloudflare.com/intelligent-automatic-restarts-for-unhealthy-kafka-consumers.
Reproduced by: a puppet that takes a partition before the check runs.
"""

import queue
from contextlib import closing

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition

pytestmark = pytest.mark.koordinator(topics={"orders": 2})

ENDS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


class Health(ConsumerRebalanceListener):
    def __init__(self, config):
        self.config, self.positions, self.before = config, {}, {}

    def is_good(self):
        """Whether each partition was read to its end, or further than at the last check."""
        with closing(KafkaConsumer(bootstrap_servers=self.config["bootstrap_servers"])) as consumer:
            ends = consumer.end_offsets(ENDS)
        now, before = dict(self.positions), self.before
        self.before = now
        return all(now[partition] == ends[partition] or now[partition] != before.get(partition) for partition in now)

    def on_partitions_assigned(self, assigned):
        pass

    def on_partitions_revoked(self, revoked):
        pass


class HealthOfOwner(Health):
    def on_partitions_revoked(self, revoked):
        for partition in revoked:
            self.positions.pop(partition, None)


def work(health, handled, stopped):
    with closing(KafkaConsumer(**health.config)) as consumer:
        consumer.subscribe(["orders"], listener=health)
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            for partition, records in consumer.poll(timeout_ms=100).items():
                health.positions[partition] = records[-1].offset + 1
                handled.put(partition)


@pytest.mark.parametrize(
    ("health", "said"), [pytest.param(Health, False, id="wrong"), pytest.param(HealthOfOwner, True, id="right")]
)
def test_a_worker_that_lost_a_partition_is_healthy(koordinator, start, health, said):
    group, handled = koordinator.group("svc"), queue.Queue()
    probe = health(koordinator.client_config("kafka-python", group_id="svc", group_instance_id="b"))
    koordinator.produce("orders", *({"partition": number, "value": "1"} for number in (0, 1)))
    start(work, probe, handled)
    assert {handled.get(timeout=10) for _ in ENDS} == set(ENDS)
    assert probe.is_good()
    group.create_puppet("peer", instance_id="a").join()
    group.wait_stable(members=2).assert_assignment({"a": {"orders": [0]}, "b": {"orders": [1]}})
    koordinator.produce("orders", {"partition": 0, "value": "2"})
    assert probe.is_good() == said
