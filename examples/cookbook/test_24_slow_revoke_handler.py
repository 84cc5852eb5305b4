"""A group waits for a running revoke handler up to the rebalance timeout, then continues without the member.

A handler that flushes to a slow sink "until all is written" delays every member for `max.poll.interval.ms`, is removed,
and commits too late. So limit the flush: the next owner handles the remaining records.

Evidence: https://github.com/zio/zio-kafka/pull/1089, https://github.com/akka/alpakka-kafka/pull/1263,
https://github.com/astubbs/parallel-consumer/pull/466.
Reproduced by: a puppet that joins; `expire_join_phase`, which names the members that the group waited for.
"""

import asyncio
import threading

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

pytestmark = pytest.mark.koordinator(topics={"orders": 2})

FLUSH_S = 0.1


class Thorough(ConsumerRebalanceListener):
    def __init__(self, flush):
        self.flush = flush

    async def on_partitions_revoked(self, revoked):
        if revoked:
            await asyncio.to_thread(self.flush)

    async def on_partitions_assigned(self, assigned):
        pass


class Punctual(Thorough):
    async def on_partitions_revoked(self, revoked):
        if revoked:
            try:
                async with asyncio.timeout(FLUSH_S):
                    await asyncio.to_thread(self.flush)
            except TimeoutError:
                print("the rest is not committed, and the next owner's")


async def work(config, listener):
    consumer = AIOKafkaConsumer(**config)
    consumer.subscribe(["orders"], listener=listener)
    try:
        await consumer.start()
        async for order in consumer:
            print(order.value)
    finally:
        await consumer.stop()


@pytest.fixture
def joined(koordinator, start):
    """Return the group of a worker with a blocked sink, when a peer joins."""
    sink_is_free = threading.Event()

    def joined(listener):
        group = koordinator.group("svc")
        config = koordinator.client_config("aiokafka", group_id="svc", client_id="svc-1")
        start(work, config, listener(sink_is_free.wait))
        group.wait_stable(members=1)
        group.create_puppet("peer", protocols=("roundrobin",)).join()
        return group

    yield joined
    sink_is_free.set()


def test_a_worker_with_an_unlimited_flush_is_removed(joined):
    group = joined(Thorough)
    with pytest.raises(AssertionError, match="PreparingRebalance"):
        group.wait_stable(members=2, timeout=5 * FLUSH_S)
    assert [fired.kind for fired in group.expire_join_phase()] == ["join"]
    group.wait_stable(members=1)
    assert [member.client_id for member in group.members] == ["peer"]


def test_a_worker_with_a_limited_flush_stays(joined):
    group = joined(Punctual)
    group.wait_stable(members=2).assert_owned_exactly_once(timeout=30)
