"""A released record comes back after later ones: a stock level that is set in the order of arrival is wrong.

A share group gives the order of a partition up. A record that a worker releases is delivered again, while others
have gone on. A worker that sets a value has to compare the offsets of the records.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka.
Reproduced by: a worker that releases its first record, as when its database is not there for a moment.
"""

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer


def set_level(levels, message):
    levels[message.key()] = (message.offset(), message.value())


def set_newer_level(levels, message):
    offset, _ = levels.get(message.key(), (-1, None))
    if message.offset() > offset:
        set_level(levels, message)


@pytest.fixture
def consumer(koordinator):
    koordinator.create_topic("stock", partitions=1)
    consumer = ShareConsumer(
        {
            "bootstrap.servers": koordinator.bootstrap_servers,
            "group.id": "levels",
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe(["stock"])
    while not koordinator.group("levels").share_positions():
        consumer.poll(0.1)
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("work", "level"),
    [pytest.param(set_level, b"10", id="wrong: the old level"), pytest.param(set_newer_level, b"9", id="right")],
)
def test_a_level_that_is_delivered_again(koordinator, consumer, work, level):
    levels, handled = {}, 0
    koordinator.produce("stock", {"key": "nails", "value": "10"}, {"key": "nails", "value": "9"})
    while handled < 2:
        for message in consumer.poll(1):
            if message.value() == b"10" and message.delivery_count() == 1:
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
                continue
            work(levels, message)
            consumer.acknowledge(message)
            handled += 1
        consumer.commit_sync()
    assert levels[b"nails"][1] == level
