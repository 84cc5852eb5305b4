"""A full group rejects another member (`group.max.size`, KIP-389), and a worker that retries at once makes it worse.

kafka-python raises GroupMaxSizeReachedError from each `poll`, at once. A loop that ignores it hammers a busy
coordinator without a pause, and no operator learns that a replica is idle.

Evidence: https://github.com/apache/kafka/pull/8525 (KAFKA-9885), https://github.com/apache/kafka/pull/6956.
Reproduced by: the setting `group.max.size`.
"""

from contextlib import closing, suppress

import pytest
from kafka import KafkaConsumer
from kafka.errors import GroupMaxSizeReachedError, KafkaError

pytestmark = pytest.mark.koordinator(topics={"orders": 4}, config={"group.max.size": 1})


def stubborn(config, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            # assumes that every error passes
            with suppress(KafkaError):
                consumer.poll(timeout_ms=100)


def modest(config, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            try:
                consumer.poll(timeout_ms=100)
            except GroupMaxSizeReachedError as error:
                # the operator who scaled the deployment must see it
                raise SystemExit("the group is full: fewer replicas, or a larger group.max.size") from error


@pytest.fixture
def one_too_many(koordinator, start):
    def one_too_many(program):
        config = koordinator.client_config("kafka-python", group_id="svc")
        start(program, config)
        koordinator.group("svc").wait_stable(members=1)
        return start(program, config)

    return one_too_many


def test_a_stubborn_worker_asks_without_a_pause(koordinator, one_too_many):
    one_too_many(stubborn)
    koordinator.group("svc").assert_request("JoinGroup", error="GROUP_MAX_SIZE_REACHED", at_least=20, timeout=30)


def test_a_modest_worker_ends_and_says_why(koordinator, one_too_many):
    refused = one_too_many(modest)
    with pytest.raises(SystemExit, match="the group is full"):
        refused.result()
    assert len(koordinator.group("svc").members) == 1
