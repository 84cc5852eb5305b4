"""From an eager assignor to the cooperative one there is no rolling bounce in Python: the first worker is refused.

All members of a group need an assignor in common, or who comes last gets INCONSISTENT_GROUP_PROTOCOL. Java's way, to
offer both for one bounce, is refused by librdkafka (and kafka-python) itself. So stop all, and start all.

Evidence: https://github.com/confluentinc/confluent-kafka-go/issues/605,
https://github.com/confluentinc/librdkafka/issues/4368, https://github.com/twmb/franz-go/pull/1367.
Lever: a puppet that offers the assignors it is told to.
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


def test_in_a_rolling_bounce_the_first_worker_is_refused(koordinator, run):
    group, worker = koordinator.group("svc"), run(OLD)
    group.puppet("peer", protocols=[OLD]).join()
    group.wait_stable(members=2)
    worker.stop()
    with pytest.raises(KafkaException, match="INCONSISTENT_GROUP_PROTOCOL"):
        run(NEW).result()


def test_a_worker_that_offers_both_does_not_start(run):
    with pytest.raises(KafkaException, match=r"online migration .* not supported"):
        run(f"{NEW},{OLD}").result()


def test_when_all_have_stopped_the_new_ones_start(koordinator, run):
    group, worker = koordinator.group("svc"), run(OLD)
    peer = group.puppet("peer", protocols=[OLD]).join()
    group.wait_stable(members=2)
    peer.leave()
    worker.stop()
    run(NEW)
    group.puppet("new peer", protocols=[NEW]).join()
    group.wait_stable(members=2).assert_owned_exactly_once(timeout=30)
    assert group.protocol == NEW
