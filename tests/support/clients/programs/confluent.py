"""Members and transactional producers of confluent-kafka, driven by lines: see line_clients.py."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, Queue
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LIMIT_S = 30
SERVERS = {"bootstrap.servers": sys.argv[1]}
READING = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "topic.metadata.refresh.interval.ms": 1000}


def until(get: Callable[[], T | None]) -> T:
    """Return the value of a function once it has one."""
    end = time.monotonic() + LIMIT_S
    while (value := get()) is None:
        if time.monotonic() > end:
            raise TimeoutError(f"not within {LIMIT_S} s")
        time.sleep(0.01)
    return value


class Member:
    """A consumer and the thread that polls it; `tasks` run between two polls."""

    def __init__(self, group: str, protocol: str, instance: str, topic: str) -> None:
        settings = SERVERS | READING | {"group.id": group, "group.protocol": protocol}
        if protocol == "classic":
            settings["heartbeat.interval.ms"] = 100
        if instance != "-":
            settings["group.instance.id"] = instance
        self.consumer = Consumer(settings)
        self.consumer.subscribe([topic])
        self.first: str | None = None
        self._tasks: Queue[tuple[Callable[[], object], Future[object]]] = Queue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._closed.is_set():
            message = self.consumer.poll(0.05)
            if message is not None and not message.error() and self.first is None:
                self.first = message.value().decode()
            with suppress(Empty):
                call, future = self._tasks.get_nowait()
                try:
                    future.set_result(call())
                except KafkaException as error:
                    future.set_exception(error)

    def perform(self, call: Callable[[], T]) -> T:
        """Call a function in the thread that polls."""
        future: Future[T] = Future()
        self._tasks.put((call, future))
        return future.result(LIMIT_S)

    def owned(self, count: int) -> str:
        def found() -> str | None:
            rows = sorted(f"{each.topic}-{each.partition}" for each in self.perform(self.consumer.assignment))
            return " ".join(rows) if len(rows) == count else None

        return until(found)

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        self.consumer.close()


members: dict[str, Member] = {}
producers: dict[str, Producer] = {}


def read(topic: str, count: int) -> str:
    """Return the first committed values of a topic."""
    settings = SERVERS | READING | {"group.id": f"read-{topic}", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    values: list[str] = []

    def are_there() -> str | None:
        message = consumer.poll(0.05)
        if message is not None and not message.error():
            values.append(message.value().decode())
        return " ".join(values) if len(values) == count else None

    try:
        return until(are_there)
    finally:
        consumer.close()


def perform(command: str, name: str, *words: str) -> str | None:
    """Perform a command; return the value of its answer."""
    match command:
        case "join":
            members[name] = Member(*words)
        case "owned":
            return members[name].owned(int(words[0]))
        case "first":
            return until(lambda: members[name].first)
        case "leave":
            members[name].close()
        case "producer":
            producers[name] = Producer(SERVERS | {"transactional.id": words[0]})
            producers[name].init_transactions(LIMIT_S)
        case "begin":
            producers[name].begin_transaction()
        case "send":
            producers[name].produce(words[0], words[1])
            producers[name].flush(LIMIT_S)
        case "commit" if name in producers:
            producers[name].commit_transaction(LIMIT_S)
        case "commit":
            place = TopicPartition(words[0], int(words[1]), int(words[2]))
            consumer = members[name].consumer
            members[name].perform(lambda: consumer.commit(offsets=[place], asynchronous=False))
        case "abort":
            producers[name].abort_transaction(LIMIT_S)
        case "read":
            return read(name, int(words[0]))
    return None


for line in sys.stdin:
    try:
        answer = f"ok {perform(*line.split()) or ''}"
    except (KafkaException, TimeoutError) as error:
        answer = f"error {error}".replace("\n", " ")
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()
