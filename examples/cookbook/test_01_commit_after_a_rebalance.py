"""A commit after a rebalance fails with CommitFailedError. The worker must drop its orders and poll on, not crash.

The orders in hand belong to other members now, which handle them again. After the next poll the client rejoins by
itself. A worker that crashes restarts, joins, and so causes the next rebalance for all others.

Evidence: https://github.com/dpkp/kafka-python/issues/1401, https://github.com/dpkp/kafka-python/issues/2179,
https://github.com/tulios/kafkajs/pull/1474.
Reproduced by: `hold` keeps the commit in flight, a puppet joins, `expire_join_phase` completes the rebalance without
the worker.
"""

import logging
from contextlib import closing

import pytest
from kafka import KafkaConsumer
from kafka.errors import CommitFailedError

pytestmark = pytest.mark.koordinator(topics={"orders": 2})

LOG = logging.getLogger(__name__)


def fragile(config, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            if consumer.poll(timeout_ms=100):
                consumer.commit()


def robust(config, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            if consumer.poll(timeout_ms=100):
                try:
                    consumer.commit()
                except CommitFailedError as error:
                    LOG.warning("others will handle it again: %s", error)


@pytest.fixture
def overtaken(koordinator, start):
    """Run a program whose commit arrives after the rebalance has completed without it."""

    def overtaken(program):
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        running = start(program, koordinator.client_config("kafka-python", **settings))
        group = koordinator.group("svc").wait_stable(members=1)
        with group.hold("OffsetCommit", client_id="svc-1") as held:
            koordinator.produce("orders", "a")
            held.wait_entered()
            group.create_puppet("peer").join()
            group.expire_join_phase()
            held.release()
        group.assert_request("OffsetCommit", error="UNKNOWN_MEMBER_ID", client_id="svc-1", timeout=30)
        return running

    return overtaken


def test_a_fragile_worker_dies_of_it(overtaken):
    running = overtaken(fragile)
    with pytest.raises(CommitFailedError):
        running.result()


def test_a_robust_worker_comes_back(koordinator, overtaken):
    overtaken(robust)
    koordinator.group("svc").wait_stable(members=2, all_owned=True).assert_owned_exactly_once()
