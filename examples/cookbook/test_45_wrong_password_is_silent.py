"""A job with a wrong password reads nothing, and ends as if there were nothing to read.

librdkafka tries to connect again and again, because the password may be valid soon. `poll` returns None; only the
callback of errors learns of the refusal.

Evidence: https://github.com/confluentinc/confluent-kafka-python/issues/1187,
https://github.com/confluentinc/confluent-kafka-python/issues/1048.
Reproduced by: a user of the cluster, and another password.
"""

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", users={"nightly": "new-password"}, topics={"orders": 1})

SILENT_S = 2

OLD = {"sasl.password": "old-password", "log_level": 0}


def read_all(consumer):
    orders = []
    while (message := consumer.poll(SILENT_S)) is not None:
        orders.append(message.value())
    return orders


def config_of(koordinator, **more):
    return koordinator.client_config("confluent-kafka", user="nightly", group_id="nightly", **more) | OLD


def stop_at_refusals(error):
    if error.name() == "_AUTHENTICATION":
        raise KafkaException(error)


def test_wrong_the_job_ends_without_its_orders(koordinator):
    koordinator.produce("orders", "1", "2")
    consumer = Consumer(config_of(koordinator))
    consumer.subscribe(["orders"])
    assert read_all(consumer) == []
    consumer.close()


def test_right_the_job_fails(koordinator):
    koordinator.produce("orders", "1", "2")
    consumer = Consumer(config_of(koordinator, error_cb=stop_at_refusals))
    consumer.subscribe(["orders"])
    with pytest.raises(KafkaException, match="Invalid username or password"):
        read_all(consumer)
    consumer.close()
