"""Consumers whose position an unclean election has lost go on with what the new leader has (KIP-320)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster

LIMIT_S = 60

Read = list[tuple[int | None, bytes | None]]


def by_confluent_kafka(cluster: Cluster) -> tuple[Callable[[], Read], Callable[[], None]]:
    settings = cluster.client_config("confluent-kafka", group_id="svc")
    consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])

    def poll() -> Read:
        message = consumer.poll(0.1)
        return [] if message is None else [(message.offset(), message.value())]

    return poll, consumer.close


def by_kafka_python(cluster: Cluster) -> tuple[Callable[[], Read], Callable[[], None]]:
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - it warns as it is imported

    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition("orders", 0)])

    def poll() -> Read:
        return [(each.offset, each.value) for rows in consumer.poll(100).values() for each in rows]

    return poll, consumer.close


@pytest.mark.parametrize("start", [by_confluent_kafka, by_kafka_python])
def test_a_consumer_beyond_the_end_reads_the_records_that_take_the_place_of_lost_ones(
    start: Callable[[Cluster], tuple[Callable[[], Read], Callable[[], None]]],
) -> None:
    with Emulator({"orders": 1}) as cluster:
        for value in "abcd":
            cluster.produce("orders", value)
        poll, close = start(cluster)

        def read(count: int) -> Read:
            found, end = [], time.monotonic() + LIMIT_S
            while len(found) < count and time.monotonic() < end:
                found += poll()
            return found

        assert read(4) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
        cluster.truncate("orders", 0, to=1)
        cluster.produce("orders", "e")
        assert read(1) == [(1, b"e")]
        close()
        errors = {each.error for each in cluster.events() if each.kind == "response" and each.api == "Fetch"}
        assert "FENCED_LEADER_EPOCH" in errors
