"""A commit fails when the group has moved on meanwhile (CommitFailedError), and a worker must not die of it.

The orders in hand belong to others now, who will handle them again. So drop them and poll on: the client joins by
itself. A worker that dies starts again, joins, and so makes the next rebalance for all the others.

Evidence: https://github.com/dpkp/kafka-python/issues/1401, https://github.com/dpkp/kafka-python/issues/2179,
https://github.com/tulios/kafkajs/pull/1474.
Lever: `hold` keeps the commit in flight, a puppet joins, `expire_join_barrier` goes on without the worker.
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
    """A program whose commit comes when the group has gone on without it."""

    def overtaken(program):
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        running = start(program, koordinator.client_config("kafka-python", **settings))
        group = koordinator.group("svc").wait_stable(members=1)
        with group.hold("OffsetCommit", client_id="svc-1") as held:
            koordinator.produce("orders", "a")
            held.wait_entered()
            group.puppet("peer").join()
            group.expire_join_barrier()
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
    koordinator.group("svc").wait_stable(members=2).assert_owned_exactly_once()
