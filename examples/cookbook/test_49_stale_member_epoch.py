"""A worker that knows the errors of classic groups ends at STALE_MEMBER_EPOCH: the commit met a rebalance (KIP-848).

The coordinator has given the group a new epoch, and the worker's next heartbeat brings it. Until then its commits are
refused, also those of partitions that it keeps. It is a member still: commit again what it owns, and drop the rest.

Evidence: https://github.com/Blizzard/node-rdkafka/issues/1146, https://github.com/platformatic/kafka/issues/267,
https://github.com/apache/kafka/pull/22747.
Reproduced by: a rule that answers one commit with an error.
"""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from koordinator import faults

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

AFTER_A_REBALANCE = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}


def as_in_classic_groups(consumer, order):
    try:
        consumer.commit(order, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in AFTER_A_REBALANCE:
            raise


def with_epochs(consumer, order):
    try:
        consumer.commit(order, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in AFTER_A_REBALANCE | {KafkaError.STALE_MEMBER_EPOCH}:
            raise
        if order.partition() in {each.partition for each in consumer.assignment()}:
            with_epochs(consumer, order)


def work(config, commit, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    try:
        while not stopped.is_set():
            order = consumer.poll(0.1)
            if order is not None and order.error() is None:
                commit(consumer, order)
    finally:
        consumer.close()


@pytest.fixture
def worker(koordinator, start):
    """Return a function that starts a worker, whose first commit is refused."""

    def worker(commit):
        koordinator.group("svc").add_rule("OffsetCommit", faults.error("STALE_MEMBER_EPOCH"), times=1)
        koordinator.produce("orders", "a")
        settings = {"group_id": "svc", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        return start(work, koordinator.client_config("confluent-kafka", group_protocol="consumer", **settings), commit)

    return worker


def test_an_unknown_error_ends_the_worker(koordinator, worker):
    with pytest.raises(KafkaException, match="STALE_MEMBER_EPOCH"):
        worker(as_in_classic_groups).result()
    assert koordinator.group("svc").offsets == {}


def test_a_worker_that_still_owns_the_partition_commits_again(koordinator, worker):
    worker(with_epochs)
    koordinator.group("svc").assert_committed({("orders", 0): 1}, timeout=30)
    koordinator.group("svc").wait_stable(members=1, all_owned=True)
