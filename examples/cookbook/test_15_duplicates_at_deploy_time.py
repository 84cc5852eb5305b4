"""A worker that commits now and then, but not on revocation, makes the next owner repeat its work.

Each step of a deployment moves partitions. Records handled since the last commit are handled twice.

Evidence: https://github.com/PostHog/posthog/pull/35269 ("997 partitions/offset pairs were processed by at least 2
pods").
Reproduced by: a puppet that takes the partition; `assert_committed` for its starting offset.
"""

import queue

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

COMMIT_EVERY = 100


class Careless(ConsumerRebalanceListener):
    consumer = None

    async def on_partitions_revoked(self, revoked):
        pass

    async def on_partitions_assigned(self, assigned):
        pass


class Careful(Careless):
    async def on_partitions_revoked(self, revoked):
        # the worker owns them until this returns
        if revoked:
            await self.consumer.commit()


async def work(config, listener, handled):
    listener.consumer = consumer = AIOKafkaConsumer(**config)
    consumer.subscribe(["orders"], listener=listener)
    try:
        await consumer.start()
        async for order in consumer:
            handled.put(order.value)
            if (order.offset + 1) % COMMIT_EVERY == 0:
                await consumer.commit()
    finally:
        await consumer.stop()


@pytest.fixture
def deployed(koordinator, start):
    """Return the group after 3 orders were handled and the next owner has taken over."""

    def deployed(listener):
        group, handled = koordinator.group("svc"), queue.Queue()
        koordinator.produce("orders", "a", "b", "c")
        settings = {"group_id": "svc", "group_instance_id": "svc-1", "enable_auto_commit": False}
        start(work, koordinator.client_config("aiokafka", **settings), listener, handled)
        assert [handled.get(timeout=10) for _ in "abc"] == [b"a", b"b", b"c"]
        group.create_puppet("peer", instance_id="svc-0", protocols=["roundrobin"]).join()
        group.wait_stable(members=2).assert_assignment({"svc-0": {"orders": [0]}, "svc-1": {}})
        return group

    return deployed


def test_without_a_commit_on_revoke_the_next_owner_repeats_records(deployed):
    group = deployed(Careless())
    with pytest.raises(AssertionError):
        group.assert_committed({("orders", 0): 3})


def test_with_a_commit_on_revoke_the_next_owner_continues(deployed):
    deployed(Careful()).assert_committed({("orders", 0): 3})
