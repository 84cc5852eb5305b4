"""A slow join that the application abandons and retries still completes, and leaves a member that nothing polls.

A new member first receives an id and joins again with it (MEMBER_ID_REQUIRED, KIP-394): two round trips, which are
instant on localhost. On a slow network each abandoned attempt is another member, whose partitions nothing reads.

Evidence: https://github.com/confluentinc/librdkafka/issues/5569, https://github.com/segmentio/kafka-go/pull/1444,
https://github.com/kafkaex/kafka_ex/pull/540 (passed on localhost, failed with latency).
Reproduced by: a rule that delays JoinGroup.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer

from koordinator import faults

pytestmark = [
    pytest.mark.koordinator(topics={"orders": 4}),
    # aiokafka loses a connection if it is cancelled at the moment of its opening
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

PATIENCE_MS = 300


async def forgetful(config):
    while True:
        consumer = AIOKafkaConsumer("orders", **config)
        try:
            async with asyncio.timeout(PATIENCE_MS / 1000):
                await consumer.start()
        except TimeoutError:
            continue
        try:
            async for order in consumer:
                print(order.value)
        finally:
            await consumer.stop()


async def tidy(config):
    while True:
        consumer = AIOKafkaConsumer("orders", **config)
        try:
            async with asyncio.timeout(PATIENCE_MS / 1000):
                await consumer.start()
            async for order in consumer:
                print(order.value)
        except TimeoutError:
            continue
        finally:
            await consumer.stop()


@pytest.fixture
def delayed(koordinator, start):
    """Return the group of a program, and the member id of its first attempt, which takes longer than its timeout."""

    def delayed(program):
        group = koordinator.group("svc")
        rule = group.add_rule("JoinGroup", faults.delay(ms=3 * PATIENCE_MS), nth=2)
        start(program, koordinator.client_config("aiokafka", group_id="svc"))
        group.wait_stable()
        return group, rule.last.member_id

    return delayed


@pytest.mark.koordinator(leaks="ignore")
def test_an_abandoned_attempt_becomes_a_member_that_never_polls(delayed):
    group, forgotten = delayed(forgetful)
    group.assert_request("SyncGroup", error="NONE", member=forgotten, timeout=30)
    assert [member.assignment != {} for member in group.members if member.member_id == forgotten] == [True]


def test_a_cancelled_attempt_leaves(delayed):
    group, given_up = delayed(tidy)
    group.assert_left(given_up, timeout=30)
    group.wait_stable(members=1)
