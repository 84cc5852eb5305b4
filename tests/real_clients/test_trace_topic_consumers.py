"""The trace as a topic, with the clients' own consumers."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster

NAME = "__koordinator_trace"


def with_kafka_python(bootstrap_servers: str, until: float) -> Iterator[tuple[int, bytes]]:
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - it warns as it is imported

    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(NAME, 0)])
        while time.monotonic() < until:
            for batch in consumer.poll(timeout_ms=200).values():
                yield from ((record.offset, record.value) for record in batch)
    finally:
        consumer.close()


def with_confluent_kafka(bootstrap_servers: str, until: float) -> Iterator[tuple[int, bytes]]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition  # noqa: PLC0415 - likewise

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(NAME, 0, OFFSET_BEGINNING)])
        while time.monotonic() < until:
            record = consumer.poll(0.2)
            if record is not None and record.error() is None:
                yield record.offset(), record.value()
    finally:
        consumer.close()


@pytest.mark.parametrize("read", [with_kafka_python, with_confluent_kafka])
def test_a_consumer_follows_the_trace_as_it_grows(koordinator: Cluster, read: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    found: dict[int, dict[str, Any]] = {}
    with closing(read(koordinator.bootstrap_servers, deadline)) as followed:

        def until(kind: str) -> None:
            while kind not in {line["kind"] for line in found.values()}:
                offset, value = next(followed, (-1, b""))
                assert value, f"no {kind} among {len(found)} lines within {PATIENCE_S} s"
                found[offset] = json.loads(value)

        until("header")
        until("request")
        koordinator.group("g").create_puppet("one", topics=["t"])
        until("puppet")
    assert list(found) == list(range(len(found)))
    assert not [line for line in found.values() if line.get("api") == "Fetch"]
