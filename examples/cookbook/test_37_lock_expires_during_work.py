"""A worker that is slower than its lock pays a bill that another worker pays too.

A share group gives a record to one member for `share.record.lock.duration.ms`, 30 s by default. After that any
member may get it, and the acknowledgement of the first is refused. What a worker does before it knows of the
refusal is done twice.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka,
https://kafka.apache.org/documentation/#group_configs.
Reproduced by: `expire_locks(topic)`: the lock is over, as after 30 s.
"""

import pytest
from confluent_kafka import ShareConsumer


def pay_then_acknowledge(consumer, bill, paid):
    paid.append(bill.value())
    consumer.acknowledge(bill)
    consumer.commit_sync()


def acknowledge_then_pay(consumer, bill, paid):
    consumer.acknowledge(bill)
    errors = consumer.commit_sync().values()
    if not any(errors):
        paid.append(bill.value())


@pytest.fixture
def consumer(koordinator):
    koordinator.create_topic("bills", partitions=1)
    consumer = ShareConsumer(
        {
            "bootstrap.servers": koordinator.bootstrap_servers,
            "group.id": "payers",
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe(["bills"])
    while not koordinator.group("payers").share_positions():
        consumer.poll(0.1)
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("work", "payments"),
    [
        pytest.param(pay_then_acknowledge, [b"17 euro", b"17 euro"], id="wrong: paid twice"),
        pytest.param(acknowledge_then_pay, [b"17 euro"], id="right"),
    ],
)
def test_a_lock_ends_while_its_holder_works(koordinator, consumer, work, payments):
    paid = []
    koordinator.produce("bills", "17 euro")
    slow = next(iter(consumer.poll(10)))
    koordinator.group("payers").expire_locks("bills")
    work(consumer, slow, paid)
    again = next(iter(consumer.poll(10)))
    assert again.delivery_count() == 2
    work(consumer, again, paid)
    assert paid == payments
