"""A worker that resubscribes now and then causes a rebalance each time, and the logs do not say why.

To "refresh" its topics it unsubscribes, which leaves the group, and subscribes, which joins it again. Clients discover
new topics and partitions by themselves.

Evidence: https://github.com/robinhood/faust/issues/616 ("Why exactly is the rebalance occurring?"),
https://github.com/robinhood/faust/issues/606, https://github.com/faust-streaming/faust/issues/133.
Reproduced by: the cause of each rebalance, in `assert_rebalances` and the trace.
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
    """Return the group of a worker that received orders three times."""

    def worked(program):
        group = koordinator.group("svc")
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        start(program, koordinator.client_config("aiokafka", **settings))
        for count in (1, 2, 3):
            koordinator.produce("orders", f"order {count}")
            group.assert_committed({("orders", 0): count}, timeout=30)
        return group.wait_stable(members=1)

    return worked


def test_each_resubscription_rebalances(worked):
    group = worked(restless)
    with pytest.raises(AssertionError, match="svc-1"):
        group.assert_rebalances(exactly=1)


def test_one_subscription_rebalances_once(worked):
    worked(calm).assert_rebalances(exactly=1)
