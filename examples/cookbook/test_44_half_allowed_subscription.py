"""A consumer that skips errors does not notice that it may read only one of its topics.

A client that may not describe a topic gets TOPIC_AUTHORIZATION_FAILED (29) for it. librdkafka tells the application
once, as a message with an error, and goes on with the other topics.

Evidence: https://github.com/confluentinc/confluent-kafka-python/issues/1461,
https://github.com/karafka/karafka/pull/2109.
Reproduced by: an ACL for one topic of two; `koordinator.allow` gives rights to a user.
"""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

LIMIT_S = 10

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", config=AUTHORIZER, topics={"orders": 1, "payments": 1})

REFUSED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


def skip_errors(message):
    return message is not None and message.error() is None


def notice_refusals(message):
    if message is not None and message.error() is not None and message.error().code() in REFUSED:
        raise KafkaException(message.error())
    return skip_errors(message)


def read_one(consumer, is_record):
    message = consumer.poll(LIMIT_S)
    while not is_record(message):
        message = consumer.poll(LIMIT_S)
    return message.value()


@pytest.fixture
def consumer(koordinator):
    koordinator.allow("alice", "read", group="billing")
    koordinator.allow("alice", "read", topic="orders")
    consumer = Consumer(koordinator.client_config("confluent-kafka", user="alice", group_id="billing"))
    consumer.subscribe(["orders", "payments"])
    yield consumer
    consumer.close()


def test_wrong_a_consumer_that_skips_errors_reads_half_of_its_topics(koordinator, consumer):
    koordinator.produce("payments", "never read")
    koordinator.produce("orders", "order")
    assert read_one(consumer, skip_errors) == b"order"
    assert [each.topic for each in consumer.assignment()] == ["orders"]


def test_right_a_refused_topic_is_an_error_of_the_application(koordinator, consumer):
    koordinator.produce("payments", "payment")
    with pytest.raises(KafkaException, match="payments"):
        read_one(consumer, notice_refusals)
    koordinator.allow("alice", "read", topic="payments")
    assert read_one(consumer, skip_errors) == b"payment"
