"""A producer that loses the right to its transactional id cannot end its transaction, and no retry helps.

The refusal is fatal for the producer. Its records stay invisible to `read_committed`, and stop the partition until the
transaction times out, or until a new producer with this id, which again has the right, aborts it.

Evidence: https://github.com/confluentinc/librdkafka/pull/3063, https://github.com/apache/kafka/pull/12149.
Reproduced by: `koordinator.revoke(…, transactional_id=…)` in the middle of a transaction.
"""

import pytest
from confluent_kafka import KafkaException, Producer

LIMIT_S = 10

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", config=AUTHORIZER, topics={"invoices": 1})


class Stubborn:
    """Retry with the same producer."""

    def __init__(self, config):
        self._config = config
        self.producer = self._new()

    def _new(self):
        producer = Producer(self._config)
        producer.init_transactions(LIMIT_S)
        return producer

    def write(self, invoice, before_commit=lambda: None):
        try:
            self.producer.begin_transaction()
            self.producer.produce("invoices", invoice)
            self.producer.flush(LIMIT_S)
            before_commit()
            self.producer.commit_transaction(LIMIT_S)
        except KafkaException as error:
            self.recover(error)
            return False
        return True

    def recover(self, error):
        del error


class Careful(Stubborn):
    """Replace the producer after a fatal error."""

    def write(self, invoice, before_commit=lambda: None):
        if self.producer is None:
            self.producer = self._new()
        return super().write(invoice, before_commit)

    def recover(self, error):
        if error.args[0].fatal():
            self.producer = None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(Stubborn, False, id="wrong: the worker needs a restart that it does not ask for"),
        pytest.param(Careful, True, id="right"),
    ],
)
def test_a_worker_goes_on_as_soon_as_it_has_its_right_again(koordinator, kind, expected):
    right = {"user": "alice", "operation": "write", "transactional_id": "svc"}
    koordinator.allow("alice", "write", topic="invoices")
    koordinator.allow(**right)
    access = koordinator.client_config("confluent-kafka", user="alice")
    ours = {name: access[name] for name in access if name.startswith(("bootstrap", "security", "sasl"))}
    worker = kind(ours | {"transactional.id": "svc", "log_level": 0})
    assert not worker.write("1", before_commit=lambda: koordinator.revoke(**right))
    koordinator.allow(**right)
    assert worker.write("1") is expected
    assert (koordinator.transaction("svc").state == "Ongoing") is not expected
