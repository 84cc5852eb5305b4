"""Of two consumers with one `group.instance.id` the older is fenced (KIP-345) and must end, because it lost its place.

A copied manifest is enough. A worker that only logs errors keeps reading beside its successor: kafka-python keeps the
partitions of a fenced consumer, and reports the fencing at its next commit at the earliest.

Evidence: https://github.com/twmb/franz-go/issues/931, https://github.com/thomhurst/Dekaf/issues/215.
Reproduced by: a second consumer with the same instance id, or `group.fence("svc-0")`.
"""

import logging
import queue
from contextlib import closing

import pytest
from kafka import KafkaConsumer
from kafka.errors import FencedInstanceIdError, KafkaError

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

LOG = logging.getLogger(__name__)


def unstoppable(config, handled, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            try:
                work(consumer, handled)
            except KafkaError as error:
                LOG.warning("will try again: %s", error)


def mortal(config, handled, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            try:
                work(consumer, handled)
            except FencedInstanceIdError:
                raise SystemExit("there is another consumer with my name") from None
            except KafkaError as error:
                LOG.warning("will try again: %s", error)


def work(consumer, handled):
    for records in consumer.poll(timeout_ms=100).values():
        for record in records:
            handled.put(record.value)
        consumer.commit()


@pytest.fixture
def doubled(koordinator, start):
    """Return two workers with one instance id, the older first, and their handled orders: both have order b."""

    def doubled(program):
        settings = {"group_id": "svc", "group_instance_id": "svc-0", "enable_auto_commit": False}
        config, handled = koordinator.client_config("kafka-python", **settings), (queue.Queue(), queue.Queue())
        older = start(program, config, handled[0])
        koordinator.produce("orders", "a")
        assert handled[0].get(timeout=10) == b"a"
        koordinator.group("svc").assert_committed({("orders", 0): 1}, timeout=30)
        start(program, {**config, "client_id": "younger"}, handled[1])
        koordinator.group("svc").assert_request("OffsetFetch", error="NONE", client_id="younger", timeout=30)
        koordinator.produce("orders", "b")
        assert [records.get(timeout=10) for records in handled] == [b"b", b"b"]
        koordinator.group("svc").assert_request("OffsetCommit", error="FENCED_INSTANCE_ID", timeout=30)
        return older, handled

    return doubled


def test_a_fenced_worker_that_continues_handles_orders_twice(koordinator, doubled):
    _, handled = doubled(unstoppable)
    koordinator.produce("orders", "c")
    assert [records.get(timeout=10) for records in handled] == [b"c", b"c"]


def test_a_fenced_worker_that_ends_leaves_the_rest_to_its_successor(koordinator, doubled):
    older, handled = doubled(mortal)
    with pytest.raises(SystemExit, match="another consumer with my name"):
        older.result()
    koordinator.produce("orders", "c")
    assert handled[1].get(timeout=10) == b"c"
    assert handled[0].empty()
