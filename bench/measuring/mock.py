"""librdkafka's mock cluster: one broker, a thread in C. It says its port and ends with its input."""

from __future__ import annotations

import json
import sys

from confluent_kafka import Producer


def main() -> None:
    """Serve until standard input ends."""
    # the producer is only how the mock is started; it says on standard error that it was
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 3})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    print(json.dumps({"port": broker.port}), flush=True)
    sys.stdin.read(1)


if __name__ == "__main__":
    main()
