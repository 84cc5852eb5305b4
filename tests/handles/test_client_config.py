"""`client_config`: each client library joins with it at once, in both profiles."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster

RECORDS = 20
LIMIT_S = 120


def kafka_python(cluster: Cluster) -> int:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer("orders", **cluster.client_config("kafka-python", group_id="g"))
    # otherwise it joins before it knows the partitions, and may ignore the second join (see docs/clients.md)
    consumer.partitions_for_topic("orders")
    read, end = 0, time.monotonic() + LIMIT_S
    while read < RECORDS and time.monotonic() < end:
        read += sum(map(len, consumer.poll(timeout_ms=200).values()))
    cluster.group("g").wait_stable(members=1)
    consumer.close()
    return read


def confluent_kafka(cluster: Cluster) -> int:
    confluent = pytest.importorskip("confluent_kafka")
    consumer = confluent.Consumer(cluster.client_config("confluent-kafka", group_id="g"))
    consumer.subscribe(["orders"])
    read, end = 0, time.monotonic() + LIMIT_S
    while read < RECORDS and time.monotonic() < end:
        read += len(consumer.consume(RECORDS, timeout=0.2))
    cluster.group("g").wait_stable(members=1)
    consumer.close()
    return read


def aiokafka(cluster: Cluster) -> int:
    library = pytest.importorskip("aiokafka")

    async def consume() -> int:
        async with library.AIOKafkaConsumer("orders", **cluster.client_config("aiokafka", group_id="g")) as consumer:
            read, end = 0, time.monotonic() + LIMIT_S
            while read < RECORDS and time.monotonic() < end:
                read += sum(map(len, (await consumer.getmany(timeout_ms=200)).values()))
            await asyncio.to_thread(cluster.group("g").wait_stable, members=1)
            return read

    return asyncio.run(consume())


@pytest.mark.slow
# on a busy machine kafka-python may leave the socket of a first connection to the garbage collector
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("client", [kafka_python, confluent_kafka, aiokafka])
@pytest.mark.parametrize("profile", ["fast", "kafka-defaults"])
def test_a_consumer_reads_everything_with_these_settings(client: Callable[[Cluster], int], profile: str) -> None:
    # without the initial rebalance delay, which alone would take 3 s
    config = {"group.initial.rebalance.delay.ms": 0}
    with Emulator(topics={"orders": 2}, profile=profile, config=config) as cluster:
        cluster.produce("orders", *(str(number) for number in range(RECORDS)))
        assert client(cluster) == RECORDS
        assert cluster.group("g").state == "Empty"
        sessions = {
            event["body"]["session_timeout_ms"]  # type: ignore[index]
            for event in cluster.events(group="g")
            if (event["kind"], event.get("api")) == ("request", "JoinGroup")
        }
        assert sessions == {6_000}
