"""Transactional producers of the real clients behind one blocking interface."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

WAIT_S = 120


class Transactional(Protocol):
    """A producer whose transactional id is initialized."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        """Write a record, and wait until it is acknowledged."""

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        """Commit offsets of a group in the transaction, without a member."""

    def commit(self) -> None:
        """Commit the transaction; raises the client's own error."""

    def abort(self) -> None:
        """Abort the transaction."""

    def close(self) -> None:
        """Close the producer."""


def transactional(kind: str, servers: str, transactional_id: str) -> Transactional:
    """Return an initialized producer of a client."""
    producers = {"kafka-python": _KafkaPython, "confluent-kafka": _Confluent, "aiokafka": _Aiokafka}
    return producers[kind](servers, transactional_id)


class _KafkaPython:
    def __init__(self, servers: str, transactional_id: str) -> None:
        from kafka import KafkaProducer  # noqa: PLC0415

        self._producer = KafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
        self._producer.init_transactions()
        self.begin, self.commit = self._producer.begin_transaction, self._producer.commit_transaction
        self.abort = self._producer.abort_transaction

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._producer.send(topic, value, partition=partition).get(WAIT_S)

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        from kafka import TopicPartition  # noqa: PLC0415
        from kafka.structs import OffsetAndMetadata  # noqa: PLC0415

        rows = {TopicPartition(*at): OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()}
        self._producer.send_offsets_to_transaction(rows, group)

    def close(self) -> None:
        self._producer.close(WAIT_S)


class _Confluent:
    def __init__(self, servers: str, transactional_id: str) -> None:
        from confluent_kafka import Consumer, Producer  # noqa: PLC0415

        self._servers, self._consumer_type = servers, Consumer
        self._producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
        self._producer.init_transactions(WAIT_S)
        self.begin = self._producer.begin_transaction

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._producer.produce(topic, value, partition=partition)
        assert self._producer.flush(WAIT_S) == 0

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        consumer = self._consumer_type({"bootstrap.servers": self._servers, "group.id": group})
        rows = [TopicPartition(*at, offset) for at, offset in offsets.items()]
        self._producer.send_offsets_to_transaction(rows, consumer.consumer_group_metadata(), WAIT_S)
        consumer.close()

    def commit(self) -> None:
        self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(WAIT_S)

    def close(self) -> None:
        self._producer.flush(0)


class _Aiokafka:
    def __init__(self, servers: str, transactional_id: str) -> None:
        from aiokafka import AIOKafkaProducer  # noqa: PLC0415

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def start() -> Any:
            producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
            await producer.start()
            return producer

        self._producer = self._run(start())

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT_S)

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=partition))

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        from aiokafka import TopicPartition  # noqa: PLC0415

        rows = {TopicPartition(*at): offset for at, offset in offsets.items()}
        self._run(self._producer.send_offsets_to_transaction(rows, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._run(self._producer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()
