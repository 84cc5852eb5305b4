"""No rolling bounce leads from an eager to the cooperative assignor in Python: the group rejects the first worker.

All members of a group need a common assignor, or the group rejects the newcomer with INCONSISTENT_GROUP_PROTOCOL.
librdkafka and kafka-python themselves reject Java's way, which offers both for one bounce. So stop all members, then
start them all.

Evidence: https://github.com/confluentinc/confluent-kafka-go/issues/605,
https://github.com/confluentinc/librdkafka/issues/4368, https://github.com/twmb/franz-go/pull/1367.
Reproduced by: a puppet with configured assignors.
"""

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(topics={"orders": 4})

OLD, NEW = "range", "cooperative-sticky"


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
def run(koordinator, start):
    """Start a worker with these assignors."""

    def run(assignors):
        settings = {"group_id": "svc", "partition_assignment_strategy": assignors}
        return start(work, koordinator.client_config("confluent-kafka", **settings))

    return run


def test_a_rolling_bounce_rejects_the_first_worker(koordinator, run):
    group, worker = koordinator.group("svc"), run(OLD)
    group.create_puppet("peer", protocols=[OLD]).join()
    group.wait_stable(members=2)
    worker.stop()
    with pytest.raises(KafkaException, match="INCONSISTENT_GROUP_PROTOCOL"):
        run(NEW).result()


def test_a_worker_that_offers_both_does_not_start(run):
    with pytest.raises(KafkaException, match=r"online migration .* not supported"):
        run(f"{NEW},{OLD}").result()


def test_the_new_workers_start_after_all_old_ones_stop(koordinator, run):
    group, worker = koordinator.group("svc"), run(OLD)
    peer = group.create_puppet("peer", protocols=[OLD]).join()
    group.wait_stable(members=2)
    peer.leave()
    worker.stop()
    run(NEW)
    group.create_puppet("new peer", protocols=[NEW]).join()
    group.wait_stable(members=2).assert_owned_exactly_once(timeout=30)
    assert group.protocol == NEW
