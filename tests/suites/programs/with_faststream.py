"""A FastStream application that prints each value of a topic."""

import asyncio
import sys

from faststream import FastStream
from faststream.kafka import KafkaBroker

servers, topic, group = sys.argv[1:]
broker = KafkaBroker(servers)


@broker.subscriber(topic, group_id=group, auto_offset_reset="earliest")
async def handle(value: str) -> None:
    """Print a value."""
    print(value, flush=True)


asyncio.run(FastStream(broker).run())
