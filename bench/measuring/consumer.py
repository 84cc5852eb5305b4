"""A consumer of all records of a partition: `consumer.py CLIENT PORT COUNT` prints the seconds that it takes."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition

TOGETHER = 10_000
"""Records that a client returns at once."""


def confluent_kafka(address: str, count: int) -> None:
    """Consume with confluent-kafka."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([ConfluentPartition("t", 0, 0)])
    while count > 0:
        count -= len(consumer.consume(TOGETHER, 1.0))
    consumer.close()


def kafka_python(address: str, count: int) -> None:
    """Consume with kafka-python."""
    consumer = KafkaConsumer(bootstrap_servers=address)
    consumer.assign([KafkaPartition("t", 0)])
    consumer.seek_to_beginning()
    while count > 0:
        count -= sum(map(len, consumer.poll(1_000, max_records=TOGETHER).values()))
    consumer.close()


async def aiokafka(address: str, count: int) -> None:
    """Consume with aiokafka."""
    consumer = AIOKafkaConsumer(bootstrap_servers=address)
    await consumer.start()
    consumer.assign([AioPartition("t", 0)])
    await consumer.seek_to_beginning()
    while count > 0:
        records = await consumer.getmany(timeout_ms=1_000, max_records=TOGETHER)
        count -= sum(map(len, records.values()))
    await consumer.stop()


CLIENTS = {
    "confluent-kafka": confluent_kafka,
    "kafka-python": kafka_python,
    "aiokafka": lambda address, count: asyncio.run(aiokafka(address, count)),
}


def main() -> None:
    """Consume, and report."""
    client, port, count = sys.argv[1:]
    begun = time.perf_counter()
    CLIENTS[client](f"127.0.0.1:{port}", int(count))
    print(json.dumps({"seconds": time.perf_counter() - begun}), flush=True)


if __name__ == "__main__":
    main()
