"""Producers of the real clients behind one interface."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

WAIT_S = 120


def send(kind: str, bootstrap_servers: str, topic: str, values: Sequence[bytes], **settings: Any) -> None:
    """Send records with a client's producer and wait for their acknowledgement; raises the client's own error.

    `settings` use kafka-python's names: `acks`, `compression_type`, `enable_idempotence`.
    """
    sender = {"kafka-python": _kafka_python, "confluent-kafka": _confluent, "aiokafka": _aiokafka}[kind]
    sender(bootstrap_servers, topic, values, settings)


def headers(kind: str) -> Any:
    """Return record headers in the client's format."""
    return {"client": kind.encode()} if kind == "confluent-kafka" else [("client", kind.encode())]


def _kafka_python(servers: str, topic: str, values: Sequence[bytes], settings: dict[str, Any]) -> None:
    from kafka import KafkaProducer  # noqa: PLC0415

    producer = KafkaProducer(bootstrap_servers=servers, **settings)
    try:
        sent = [producer.send(topic, value=each, key=each, headers=headers("kafka-python")) for each in values]
        producer.flush(WAIT_S)
        for future in sent:
            future.get(WAIT_S)
    finally:
        producer.close(WAIT_S)


def _confluent(servers: str, topic: str, values: Sequence[bytes], settings: dict[str, Any]) -> None:
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415

    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": servers, **dotted})
    errors: list[Any] = []
    for each in values:
        producer.produce(
            topic,
            value=each,
            key=each,
            headers=headers("confluent-kafka"),
            on_delivery=lambda error, _message: errors.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    if errors:
        raise KafkaException(errors[0])


def _aiokafka(servers: str, topic: str, values: Sequence[bytes], settings: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=servers, **settings)
        try:
            await producer.start()
            for each in values:
                await producer.send(topic, value=each, key=each, headers=headers("aiokafka"))
            await asyncio.wait_for(producer.flush(), WAIT_S)
        finally:
            await producer.stop()

    asyncio.run(run())
