"""Throttled clients of Python: what they report, and that they lose nothing."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from clients.asking_client import AskingClient
from clients.consumers import PATIENCE_S
from confluent_kafka import Consumer, Producer

from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster

CLIENT = "svc-1"


def set_quota(cluster: Cluster, key: str, limit: float) -> None:
    host, port = cluster.bootstrap_servers.split(":")
    entity = (EntityData(entity_type="client-id", entity_name=CLIENT),)
    entry = EntryData(entity=entity, ops=(OpData(key=key, value=limit),))
    with AskingClient((host, int(port))) as admin:
        assert admin.ask(AlterClientQuotasRequest(entries=(entry,)), 1).entries[0].error_code == 0


def poll_until(poll: Callable[[], object], condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "the condition was not met"
        poll()


def consumer_of(cluster: Cluster, throttles: list[float], **more: Any) -> Consumer:
    config = cluster.client_config("confluent-kafka", group_id="g", client_id=CLIENT, **more)
    report = {"throttle_cb": lambda event: throttles.append(event.throttle_time), "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **report})
    consumer.subscribe(["t"])
    return consumer


def test_a_producer_of_confluent_kafka_is_told_its_throttle_time(koordinator: Cluster) -> None:
    koordinator.create_topic("t", partitions=1)
    set_quota(koordinator, "producer_byte_rate", 4_000)
    throttles: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": koordinator.bootstrap_servers,
            "client.id": CLIENT,
            "throttle_cb": lambda event: throttles.append(event.throttle_time),
        }
    )
    producer.produce("t", b"x" * 42_000)
    poll_until(lambda: producer.poll(0.1), lambda: bool(throttles))
    assert 0.4 < throttles[0] < 2
    producer.flush(PATIENCE_S)
    assert len(koordinator.records("t")) == 1


def test_a_producer_of_kafka_python_has_its_throttle_time_among_its_metrics(koordinator: Cluster) -> None:
    from kafka import KafkaProducer  # noqa: PLC0415

    koordinator.create_topic("t", partitions=1)
    set_quota(koordinator, "producer_byte_rate", 4_000)
    with closing(KafkaProducer(bootstrap_servers=koordinator.bootstrap_servers, client_id=CLIENT)) as producer:
        producer.send("t", b"x" * 42_000).get(PATIENCE_S)
        most_ms = producer.metrics()["producer-metrics"]["throttle-time-max"]
        assert 400 < most_ms < 2_000


def test_a_throttled_consumer_reads_all_records_later(koordinator: Cluster) -> None:
    koordinator.create_topic("t", partitions=1)
    for number in range(4):
        koordinator.produce("t", str(number) + "x" * 11_000)
    set_quota(koordinator, "consumer_byte_rate", 4_000)
    throttles: list[float] = []
    found: list[bytes] = []

    def poll() -> None:
        message = consumer.poll(0.2)
        if message is not None:
            found.append(message.value()[:1])

    consumer = consumer_of(koordinator, throttles, **{"max.partition.fetch.bytes": 1})
    try:
        poll_until(poll, lambda: len(found) == 4)
    finally:
        consumer.close()
    assert found == [b"0", b"1", b"2", b"3"]
    assert throttles
    assert throttles[0] > 0.5


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_a_throttled_group_stay_in_it(koordinator: Cluster, protocol: str) -> None:
    koordinator.create_topic("t", partitions=1)
    group, throttles = koordinator.group("g"), []
    consumer = consumer_of(koordinator, throttles, **{"group.protocol": protocol})
    try:
        poll_until(lambda: consumer.poll(0.1), lambda: bool(consumer.assignment()))
        generation = group.generation
        group.throttle(500)
        poll_until(lambda: consumer.poll(0.1), lambda: len(throttles) > 3)
        group.throttle(0)
        koordinator.produce("t", "after")
        found: list[Any] = []
        poll_until(lambda: found.append(consumer.poll(0.1)), lambda: any(found))
        assert group.generation == generation
        assert max(throttles) == 0.5  # and 0 when it ends
    finally:
        consumer.close()
    assert any((each.get("body") or {}).get("throttle_time_ms") == 500 for each in group.events())
