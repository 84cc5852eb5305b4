"""A consumer that ends without `stop()` keeps its partitions until its session expires, and no member reads them.

A dynamic member must send LeaveGroup on shutdown; a static one must not, because it returns (KIP-345).

Evidence: https://github.com/kafkaex/kafka_ex/pull/561.
Reproduced by: `assert_left`, `assert_did_not_leave`; `expire_session` for the events of 45 s later.
"""

import pytest
from aiokafka import AIOKafkaConsumer

pytestmark = pytest.mark.koordinator(topics={"orders": 2})


async def abrupt(config):
    consumer = AIOKafkaConsumer("orders", **config)
    await consumer.start()
    async for order in consumer:
        print(order.value)


async def orderly(config):
    consumer = AIOKafkaConsumer("orders", **config)
    try:
        await consumer.start()
        async for order in consumer:
            print(order.value)
    finally:
        await consumer.stop()


@pytest.fixture
def run_once(koordinator, start):
    """Run a program, and end it as Ctrl-C does."""

    def run_once(program, **settings):
        config = koordinator.client_config("aiokafka", group_id="svc", client_id="svc-1", **settings)
        running = start(program, config)
        group = koordinator.group("svc").wait_stable(members=1)
        running.stop()
        return group

    return run_once


@pytest.mark.koordinator(leaks="ignore")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_abrupt_end_leaves_a_member_behind(run_once):
    group = run_once(abrupt)
    with pytest.raises(AssertionError):
        group.assert_left("svc-1")
    assert group.members[0].assignment == {"orders": [0, 1]}
    assert [fired.kind for fired in group.expire_session("svc-1")] == ["session"]


def test_an_orderly_end_frees_the_partitions_at_once(run_once):
    group = run_once(orderly)
    group.assert_left("svc-1")
    assert group.state == "Empty"


def test_a_static_member_ends_in_order_without_leaving(run_once):
    group = run_once(orderly, group_instance_id="svc-1")
    group.assert_did_not_leave("svc-1")
    assert list(group.assignment) == ["svc-1"]
