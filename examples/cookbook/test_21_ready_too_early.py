"""A record produced before the consumer has its positions is lost to it: reading starts at later records.

A test that waits for "started", or for a second, passes while rebalances are quick. Wait for the actual dependency:
with `auto_offset_reset="latest"` that is the positions, not even the assignment.

Evidence: https://github.com/johanhaleby/occurrent/issues/980, https://github.com/redpanda-data/redpanda/pull/31311,
https://www.smilecdr.com/our-blog/kafka-integration-testing-partition-assignment.
Reproduced by: `hold` delays SyncGroup, and with it the assignment, for as long as the test needs.
"""

import queue
import threading
from contextlib import closing

import pytest
from kafka import KafkaConsumer

pytestmark = pytest.mark.koordinator(topics={"alerts": 2})


def hasty(config, alerts, ready, stopped):
    with closing(KafkaConsumer("alerts", **config)) as consumer:
        consumer.partitions_for_topic("alerts")
        ready.set()
        read(consumer, alerts, stopped)


def honest(config, alerts, ready, stopped):
    with closing(KafkaConsumer("alerts", **config)) as consumer:
        consumer.partitions_for_topic("alerts")
        while not consumer.assignment() and not stopped.is_set():
            consumer.poll(timeout_ms=100)
        for partition in consumer.assignment():
            consumer.position(partition)
        ready.set()
        read(consumer, alerts, stopped)


def read(consumer, alerts, stopped):
    while not stopped.is_set():
        for records in consumer.poll(timeout_ms=100).values():
            for record in records:
                alerts.put(record.value)


@pytest.fixture
def run(koordinator, start):
    """Start a program; return its alerts and its readiness event."""

    def run(program):
        alerts, ready = queue.Queue(), threading.Event()
        settings = {"group_id": "svc", "auto_offset_reset": "latest"}
        start(program, koordinator.client_config("kafka-python", **settings), alerts, ready)
        return alerts, ready

    return run


def test_a_record_sent_before_readiness_is_lost(koordinator, run):
    with koordinator.group("svc").hold("SyncGroup", optional=True):
        alerts, ready = run(hasty)
        assert ready.wait(10)
        koordinator.produce("alerts", "fire")
    with pytest.raises(queue.Empty):
        alerts.get(timeout=1)


def test_a_record_sent_after_readiness_arrives(koordinator, run):
    with koordinator.group("svc").hold("SyncGroup") as held:
        alerts, ready = run(honest)
        held.wait_entered()
        assert not ready.is_set()
    assert ready.wait(10)
    koordinator.produce("alerts", "fire")
    assert alerts.get(timeout=10) == b"fire"
