"""A worker that releases what it cannot handle loses the record at the delivery limit, without an error.

The broker counts deliveries. A record that is released is delivered again until the count has reached the
group's `share.delivery.count.limit`, 5 by default; then it is archived, and no member sees it again. A worker
has to look at `delivery_count()` and keep the record elsewhere in time.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka,
https://cwiki.apache.org/confluence/pages/viewpage.action?pageId=320278138 (dead letters, KIP-1191).
Reproduced by: a record that no worker can read.
"""

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

LIMIT = 5


def release_always(consumer, message, _kept):
    consumer.acknowledge(message, AcknowledgeType.RELEASE)


def keep_the_last_delivery(consumer, message, kept):
    if message.delivery_count() < LIMIT:
        consumer.acknowledge(message, AcknowledgeType.RELEASE)
    else:
        kept.append(message.value())
        consumer.acknowledge(message, AcknowledgeType.REJECT)


@pytest.fixture
def consumer(koordinator):
    koordinator.create_topic("orders", partitions=1)
    consumer = ShareConsumer(
        {
            "bootstrap.servers": koordinator.bootstrap_servers,
            "group.id": "workers",
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe(["orders"])
    while not koordinator.group("workers").share_positions():
        consumer.poll(0.1)
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("on_failure", "dead_letters"),
    [
        pytest.param(release_always, [], id="wrong: the order is gone"),
        pytest.param(keep_the_last_delivery, [b"{poison"], id="right"),
    ],
)
def test_an_order_that_no_worker_can_read(koordinator, consumer, on_failure, dead_letters):
    kept, handled = [], []
    koordinator.produce("orders", "{poison", "{}")
    while not handled:
        for message in consumer.poll(1):
            if message.value() == b"{}" and message.delivery_count() == LIMIT:
                consumer.acknowledge(message)
                handled.append(message.value())
            else:
                on_failure(consumer, message, kept)
        consumer.commit_sync()
    assert kept == dead_letters
