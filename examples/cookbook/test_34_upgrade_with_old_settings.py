"""A rolling upgrade to `group.protocol=consumer` ends at its first worker, which has settings of the old protocol.

The coordinator decides on sessions, heartbeats and assignment (KIP-848), so the client refuses their settings and does
not start. Without them the first worker converts the group, and old and new workers share it until the last old one
leaves.

Evidence: https://github.com/confluentinc/librdkafka/pull/5028, https://github.com/apache/kafka/pull/16899.
Reproduced by: two puppets of the classic protocol that leave one after the other.
"""

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(
    topics={"orders": 4},
    config={"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0},
)

OLD = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 3_000, "partition.assignment.strategy": "range"}


def with_old_settings(config):
    return {**config, **OLD, "group.protocol": "consumer"}


def without(config):
    kept = {name: value for name, value in config.items() if name not in OLD}
    return {**kept, "group.protocol": "consumer"}


def work(config, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    try:
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is not None and order.error():
                raise KafkaException(order.error())
    finally:
        consumer.close()


@pytest.fixture
def config(koordinator):
    return koordinator.client_config("confluent-kafka", group_id="svc")


@pytest.fixture
def group(koordinator):
    """Return a group of two old workers."""
    group = koordinator.group("svc")
    group.create_puppet("old-0").join()
    group.create_puppet("old-1").join()
    return group.wait_stable(members=2)


def test_the_first_new_worker_does_not_start(group, config, start):
    with pytest.raises(KafkaException, match="is not supported for"):
        start(work, with_old_settings(config)).result()
    assert group.type == "classic"


def test_old_workers_are_replaced_one_by_one(group, config, start):
    start(work, without(config))
    group.wait_stable(members=3, all_owned=True)
    assert group.type == "consumer"
    for name in ("old-0", "old-1"):
        group.puppets[name].leave()
        group.wait_stable(all_owned=True).assert_owned_exactly_once(timeout=30)
    group.wait_stable(members=1, all_owned=True)
