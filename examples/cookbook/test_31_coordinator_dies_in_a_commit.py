"""A commit that times out may have happened: a worker that writes its batch again writes it twice.

The coordinator has decided the transaction, and dies before it has answered and before the markers are written. Its
successor reads the decision and completes it. Only a repeated commit tells the outcome: librdkafka marks the error as
retriable.

Evidence: https://github.com/apache/iceberg/pull/17450, https://github.com/confluentinc/librdkafka/issues/3003.
Reproduced by: `hold("WriteTxnMarkers")`, a rule `never_answer` on EndTxn, and `coordinator.kill()`.
"""

import queue

import pytest
from confluent_kafka import KafkaException, Producer

from koordinator import faults

pytestmark = pytest.mark.koordinator(topics={"invoices": 1}, brokers=2, config={"default.replication.factor": 2})


def write(servers, commit):
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "svc", "reconnect.backoff.max.ms": 200})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("invoices", b"invoice", partition=0)
    commit(producer)


def hasty(servers, failures):
    def commit(producer):
        try:
            producer.commit_transaction(1)
        except KafkaException as error:
            failures.put(error)
            write(servers, Producer.commit_transaction)

    write(servers, commit)


def patient(servers, failures):
    def commit(producer):
        while True:
            try:
                return producer.commit_transaction(1)
            except KafkaException as error:
                failures.put(error)
                if not error.args[0].retriable():
                    raise

    write(servers, commit)


@pytest.fixture
def failed_over(koordinator, start):
    """Return the committed records of a worker whose coordinator died between decision and markers."""

    def failed_over(program):
        transaction, failures = koordinator.transaction("svc"), queue.Queue()
        transaction.add_rule("EndTxn", faults.never_answer(apply=True), once=True)
        with transaction.hold("WriteTxnMarkers") as hold:
            running = start(lambda *args: program(*args[:-1]), koordinator.bootstrap_servers, failures)
            hold.wait_entered()
            assert failures.get(timeout=20) is not None
            coordinator = transaction.wait_state("PrepareCommit").coordinator
            coordinator.kill()
        coordinator.start()
        running.result()
        transaction.wait_state("CompleteCommit")
        return [record.value for record in koordinator.records("invoices")]

    return failed_over


def test_a_worker_that_does_not_wait_for_the_decision_writes_twice(failed_over):
    assert failed_over(hasty) == [b"invoice", b"invoice"]


def test_a_worker_that_repeats_the_commit_writes_once(koordinator, failed_over):
    assert failed_over(patient) == [b"invoice"]
    koordinator.assert_no_open_transactions()
