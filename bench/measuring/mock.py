"""librdkafka's mock cluster: one broker, a thread in C. It prints its port and ends with its input."""

from __future__ import annotations

import json
import sys

from confluent_kafka import Producer


def main() -> None:
    """Serve until standard input ends."""
    # the producer only starts the mock, which logs its start on stderr
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 3})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    print(json.dumps({"port": broker.port}), flush=True)
    sys.stdin.read(1)


if __name__ == "__main__":
    main()
