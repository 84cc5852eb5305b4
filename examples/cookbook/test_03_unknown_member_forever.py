"""A revoke handler that retries its commit until it succeeds blocks a consumer that the group has removed.

aiokafka rejoins only after the handler returns, and the commit of a removed member fails with UNKNOWN_MEMBER_ID as long
as the group has other members.

Evidence: https://github.com/aio-libs/aiokafka/issues/575, https://github.com/aio-libs/aiokafka/issues/727.
Reproduced by: `evict(member)`.
"""

import logging

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import CommitFailedError

pytestmark = pytest.mark.koordinator(topics={"orders": 2})

LOG = logging.getLogger(__name__)


class Insistent(ConsumerRebalanceListener):
    consumer = None

    async def on_partitions_revoked(self, revoked):
        while revoked and not await self.committed():
            LOG.warning("once more")

    async def on_partitions_assigned(self, assigned):
        pass

    async def committed(self):
        try:
            await self.consumer.commit()
        except CommitFailedError as error:
            LOG.warning("not committed: %s", error)
            return False
        return True


class Modest(Insistent):
    async def on_partitions_revoked(self, revoked):
        if revoked and not await self.committed():
            LOG.warning("others will handle it again")


async def work(config, listener):
    listener.consumer = consumer = AIOKafkaConsumer(**config)
    consumer.subscribe(["orders"], listener=listener)
    try:
        await consumer.start()
        async for order in consumer:
            print(order.value)
    finally:
        await consumer.stop()


@pytest.fixture
def evicted(koordinator, start):
    """Return the group of a peer and a worker, after the worker was removed."""
    group = koordinator.group("svc")
    peer = group.create_puppet("peer", protocols=["roundrobin"]).join()

    def evicted(listener):
        koordinator.produce("orders", *"abcd")
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        start(work, koordinator.client_config("aiokafka", **settings), listener)
        group.wait_stable(members=2)
        group.evict("svc-1")
        return group

    yield evicted
    # an empty group accepts commits from anyone
    peer.leave()


def test_an_endless_commit_retry_blocks_the_worker(evicted):
    group = evicted(Insistent())
    group.assert_request("OffsetCommit", error="UNKNOWN_MEMBER_ID", timeout=30)
    with pytest.raises(AssertionError):
        group.wait_stable(members=2, timeout=1)


def test_a_worker_that_gives_up_the_commit_rejoins(evicted):
    evicted(Modest()).wait_stable(members=2, all_owned=True).assert_owned_exactly_once()
