"""An ordinary consumer: confluent-kafka, with a commit after each handled record.

`python consumer.py BOOTSTRAP_SERVERS TOPIC GROUP` until SIGTERM.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, KafkaException


def main(bootstrap_servers: str, topic: str, group: str) -> None:
    """Consume and commit; continue after a failed commit, because the partition's new owner reads the record again."""
    running = [True]
    signal.signal(signal.SIGTERM, lambda *_: running.clear())
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "client.id": "svc-1",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
        }
    )
    consumer.subscribe([topic])
    while running:
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            print(f"not committed: {error}", flush=True)
        else:
            print(f"committed: {message.value().decode()}", flush=True)
    consumer.close()


main(*sys.argv[1:])
