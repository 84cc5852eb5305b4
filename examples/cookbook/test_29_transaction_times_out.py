"""A worker slower than `transaction.timeout.ms` loses its transaction, and must do the whole batch again.

The coordinator aborts the transaction and fences its producer. The worker learns that with its next request, often the
commit. If it takes the error as one of the last record and goes on, the records before it are lost.

Evidence: https://github.com/corda/corda-runtime-os/pull/2418, https://github.com/apache/flink/pull/16941.
Reproduced by: `transaction(id).expire()`: its timeout passes now.
"""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

pytestmark = pytest.mark.koordinator(topics={"invoices": 1})

INVOICES = [b"1", b"2"]


async def write(servers, slow):
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="svc")
    async with producer, producer.transaction():
        for invoice in INVOICES:
            await producer.send_and_wait("invoices", invoice, partition=0)
        slow()


async def careless(servers, slow):
    try:
        await write(servers, slow)
    except KafkaError:
        # "the commit was late": the next batch follows
        return


async def careful(servers, slow):
    try:
        await write(servers, slow)
    except KafkaError:
        await write(servers, lambda: None)


async def read(servers, values):
    consumer = AIOKafkaConsumer(
        "invoices", bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    async with consumer:
        while len(values) < len(INVOICES):
            values.append((await consumer.getone()).value)


@pytest.fixture
def timed_out(koordinator, start):
    """Run a worker whose transaction times out before its commit."""

    def timed_out(program):
        slow = koordinator.transaction("svc").expire
        start(program, koordinator.bootstrap_servers, slow).result()
        causes = [event["cause"] for event in koordinator.events() if event["kind"] == "transaction"]
        assert "timed_out" in causes

    return timed_out


def test_a_worker_that_goes_on_loses_the_batch(koordinator, timed_out):
    timed_out(careless)
    koordinator.transaction("svc").wait_state("CompleteAbort")
    assert [record.value for record in koordinator.records("invoices")] == INVOICES  # in the log, and aborted


def test_a_worker_that_repeats_the_batch_delivers_it_once(koordinator, start, timed_out):
    timed_out(careful)
    koordinator.transaction("svc").wait_state("CompleteCommit")
    values = []
    start(read, koordinator.bootstrap_servers, values).result()
    assert values == INVOICES
    koordinator.assert_no_open_transactions()
