"""A producer of one record a second."""

import itertools
import os
import signal
import sys
import threading
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

ended = threading.Event()


def delivered(error: KafkaError | None, message: Message) -> None:
    """Print the result of a record; after the first success mark the container as healthy."""
    if error is None:
        Path("/tmp/works").touch()  # noqa: S108 - the container's own
    sys.stdout.write(f"{message.value()!r}: {error or message.partition()}\n")


def main() -> None:
    """Produce until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    producer = Producer({"bootstrap.servers": os.environ["BOOTSTRAP"]})
    for number in itertools.count():
        producer.produce(os.environ.get("TOPIC", "orders"), f"order {number}".encode(), on_delivery=delivered)
        producer.poll(0)
        if ended.wait(1):
            break
    producer.flush(5)


if __name__ == "__main__":
    main()
