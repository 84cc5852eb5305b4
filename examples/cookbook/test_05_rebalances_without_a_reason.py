"""A worker that subscribes anew now and then makes a rebalance of each time, and the logs do not say who or why.

To "refresh" the topics it unsubscribes, which is leaving the group, and subscribes, which is joining it. Clients look
for new topics and partitions by themselves.

Evidence: https://github.com/robinhood/faust/issues/616 ("Why exactly is the rebalance occurring?"),
https://github.com/robinhood/faust/issues/606, https://github.com/faust-streaming/faust/issues/133.
Lever: the cause of each rebalance, in `assert_rebalances` and the trace.
"""

import pytest
from aiokafka import AIOKafkaConsumer

pytestmark = pytest.mark.koordinator(topics={"orders": 1})


async def restless(config):
    consumer = AIOKafkaConsumer("orders", **config)
    try:
        await consumer.start()
        while True:
            if await consumer.getmany(timeout_ms=100):
                await consumer.commit()
                consumer.unsubscribe()
                consumer.subscribe(["orders"])
    finally:
        await consumer.stop()


async def calm(config):
    consumer = AIOKafkaConsumer("orders", **config)
    try:
        await consumer.start()
        while True:
            if await consumer.getmany(timeout_ms=100):
                await consumer.commit()
    finally:
        await consumer.stop()


@pytest.fixture
def worked(koordinator, start):
    """The group of a worker that has had orders three times."""

    def worked(program):
        group = koordinator.group("svc")
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        start(program, koordinator.client_config("aiokafka", **settings))
        for count in (1, 2, 3):
            koordinator.produce("orders", f"order {count}")
            group.assert_committed({("orders", 0): count}, timeout=30)
        return group.wait_stable(members=1)

    return worked


def test_who_subscribes_anew_rebalances_each_time(worked):
    group = worked(restless)
    with pytest.raises(AssertionError, match="svc-1"):
        group.assert_rebalances(exactly=1)


def test_who_subscribes_once_rebalances_once(worked):
    worked(calm).assert_rebalances(exactly=1)
