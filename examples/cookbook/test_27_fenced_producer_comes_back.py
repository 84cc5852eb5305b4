"""A fenced producer that starts again under its transactional id fences its successor, and the two never end.

Kafka fences the older of two producers with one `transactional.id`, because it takes it for a zombie. The older one
must end: another InitProducerId would make it the newer one.

Evidence: https://github.com/xtdb/xtdb/issues/5446, https://github.com/corda/corda-runtime-os/pull/6303.
Reproduced by: `create_producer(name, transactional_id)`, a scripted producer that takes the id over.
"""

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

pytestmark = pytest.mark.koordinator(topics={"invoices": 1})


async def produce(servers, invoices):
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="svc", client_id="worker")
    await producer.start()
    try:
        for invoice in invoices:
            async with producer.transaction():
                await producer.send_and_wait("invoices", invoice(), partition=0)
    finally:
        await producer.stop()


async def stubborn(servers, invoices):
    try:
        await produce(servers, invoices)
    except KafkaError:
        await produce(servers, invoices)


async def obedient(servers, invoices):
    try:
        await produce(servers, invoices)
    except KafkaError:
        return


@pytest.fixture
def successor(koordinator, start):
    """Run a worker until another producer has taken over its transactional id; return that producer."""

    def successor(program):
        other = koordinator.create_producer("successor", "svc")

        def in_the_middle():
            other.init().produce("invoices", "of the successor")
            return b"late"

        invoices = iter([lambda: b"first", in_the_middle, lambda: b"again"])
        start(program, koordinator.bootstrap_servers, invoices).result()
        return other

    return successor


def test_a_producer_that_comes_back_fences_its_successor(successor):
    other = successor(stubborn)
    assert other.commit().error is not None


def test_a_producer_that_ends_leaves_the_id_to_its_successor(koordinator, successor):
    other = successor(obedient)
    assert other.commit().error is None
    koordinator.transaction("svc").wait_state("CompleteCommit")
    koordinator.assert_no_open_transactions()
