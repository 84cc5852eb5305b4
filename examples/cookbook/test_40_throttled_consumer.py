"""A job that ends when a poll returns nothing leaves records unread as soon as a quota throttles it.

A throttled consumer gets no error. Its next response comes later, perhaps after many seconds (KIP-219). Only the end
of the partition says that there is no more to read.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-219+-+Improve+quota+communication,
https://kafka.apache.org/documentation/#design_quotas.
Reproduced by: the rule `throttle(ms, mute=True)` on Fetch; `group.throttle(ms)` does it for all requests.
"""

import pytest
from confluent_kafka import Consumer

from koordinator import faults

SILENT_S = 0.5


def read_until_silent(consumer):
    orders = []
    message = consumer.poll(30)
    while message is not None:
        orders.append(message.value())
        message = consumer.poll(SILENT_S)
    return orders


def read_to_the_end(consumer):
    orders = []
    while not has_read_all(consumer):
        message = consumer.poll(SILENT_S)
        if message is not None:
            orders.append(message.value())
    return orders


def has_read_all(consumer):
    places = consumer.position(consumer.assignment())
    ends = [consumer.get_watermark_offsets(place, cached=True)[1] for place in places]
    return bool(places) and [place.offset for place in places] == ends


@pytest.fixture
def consumer(koordinator):
    # a small limit makes each order a fetch of its own
    more = {"auto.offset.reset": "earliest", "max.partition.fetch.bytes": 1}
    consumer = Consumer(koordinator.client_config("confluent-kafka", group_id="nightly") | more)
    consumer.subscribe(["orders"])
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        pytest.param(read_until_silent, [b"1"], id="wrong: the job ends after its first order"),
        pytest.param(read_to_the_end, [b"1", b"2", b"3"], id="right"),
    ],
)
def test_a_throttled_job_reads_all_orders(koordinator, consumer, read, expected):
    koordinator.create_topic("orders", partitions=1)
    for order in ("1", "2", "3"):
        koordinator.produce("orders", order)
    rule = koordinator.group("nightly").add_rule("Fetch", faults.throttle(1500, mute=True))
    assert read(consumer) == expected
    assert rule.hits
