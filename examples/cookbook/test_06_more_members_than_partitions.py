"""Members beyond the number of partitions own none, so a readiness probe that requires a partition never succeeds.

A rollout that waits for such a worker never ends: the old workers, which own the partitions, stop only when the new
ones are ready.

Evidence: https://github.com/robinhood/faust/issues/134.
Reproduced by: more members than partitions; `wait_stable(members=…)`.
"""

import threading

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

pytestmark = pytest.mark.koordinator(topics={"orders": 1})


class ReadyWithWork(ConsumerRebalanceListener):
    def __init__(self):
        self.is_ready = threading.Event()
        """The event that the readiness probe checks."""

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        if assigned:
            self.is_ready.set()


class ReadyAsMember(ReadyWithWork):
    def on_partitions_assigned(self, _):
        self.is_ready.set()


async def work(config, probe):
    consumer = AIOKafkaConsumer(**config)
    consumer.subscribe(["orders"], listener=probe)
    try:
        await consumer.start()
        async for order in consumer:
            print(order.value)
    finally:
        await consumer.stop()


def deploy(koordinator, start, probe):
    """Start two workers, one after the other. By name, the first one gets the partition."""
    probes, group = [probe(), probe()], koordinator.group("svc")
    for number, each in enumerate(probes):
        start(work, koordinator.client_config("aiokafka", group_id="svc", group_instance_id=f"svc-{number}"), each)
        group.wait_stable(members=number + 1)
    assert group.assignment == {"svc-0": {"orders": [0]}, "svc-1": {}}
    return probes


def test_a_worker_without_a_partition_is_never_ready(koordinator, start):
    probes = deploy(koordinator, start, ReadyWithWork)
    assert sum(probe.is_ready.wait(0.5) for probe in probes) == 1


def test_a_worker_without_a_partition_is_ready(koordinator, start):
    probes = deploy(koordinator, start, ReadyAsMember)
    assert all(probe.is_ready.wait(10) for probe in probes)
