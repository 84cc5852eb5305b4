"""A total keeps payments that the cluster has lost: after an unclean election offsets come back with other records.

A replica that lacks the last records becomes the leader. The consumer compares its position with the new leader's log
(KIP-320), and goes on with the records that take the place of lost ones. It raises no error; an offset that it has seen
before is all that tells the program.

Evidence: https://github.com/thomhurst/Dekaf/issues/2258, https://github.com/wvanbergen/kafka/pull/85,
https://github.com/tulios/kafkajs/issues/818.
Reproduced by: `truncate(topic, partition, to=…)`: the last records are lost, and a leader epoch begins.
"""

import queue

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(topics={"payments": 1})


def payments(config, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["payments"])
    try:
        while not stopped.is_set():
            payment = consumer.poll(0.1)
            if payment is None:
                continue
            if payment.error():
                raise KafkaException(payment.error())
            yield payment.offset(), int(payment.value())
    finally:
        consumer.close()


def total_of_all(config, totals, stopped):
    total = 0
    for _, amount in payments(config, stopped):
        total += amount
        totals.put(total)


def total_of_what_is_left(config, totals, stopped):
    """Forget a payment when its offset comes back."""
    amounts = {}
    for offset, amount in payments(config, stopped):
        amounts = {known: paid for known, paid in amounts.items() if known < offset}
        amounts[offset] = amount
        totals.put(sum(amounts.values()))


@pytest.mark.parametrize(
    ("program", "total"),
    [pytest.param(total_of_all, 65, id="wrong"), pytest.param(total_of_what_is_left, 15, id="right")],
)
def test_the_total_after_payments_are_lost(koordinator, start, program, total):
    totals = queue.Queue()
    for amount in (10, 20, 30):
        koordinator.produce("payments", f"{amount}")
    settings = koordinator.client_config("confluent-kafka", group_id="svc", auto_offset_reset="earliest")
    start(program, settings, totals)
    assert [totals.get(timeout=30) for _ in range(3)] == [10, 30, 60]
    koordinator.truncate("payments", 0, to=1)
    koordinator.produce("payments", "5")
    assert totals.get(timeout=30) == total
