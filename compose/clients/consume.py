"""A static member: a restart within its session timeout causes no rebalance."""

import os
import signal
import sys
import threading
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

ended = threading.Event()
WORKS = Path("/tmp/works")  # noqa: S108 - the container's own


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    """Print the assignment, and mark the container as healthy."""
    sys.stdout.write(f"assigned {sorted(each.partition for each in partitions)}\n")
    WORKS.touch()


def main() -> None:
    """Consume until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    WORKS.unlink(missing_ok=True)
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ["BOOTSTRAP"],
            "group.id": os.environ.get("GROUP", "svc"),
            "group.instance.id": os.environ["INSTANCE"],
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 30_000,
        }
    )
    consumer.subscribe([os.environ.get("TOPIC", "orders")], on_assign=assigned)
    while not ended.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            sys.stdout.write(f"{message.partition()}@{message.offset()} {message.value()!r}\n")
    # a static member does not leave its group
    consumer.close()


if __name__ == "__main__":
    main()
