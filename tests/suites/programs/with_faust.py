"""A Faust application that prints each value of a topic."""

import sys

import faust

servers, topic, group = sys.argv[1:]
app = faust.App(
    group,
    broker=f"kafka://{servers}",
    store="memory://",
    value_serializer="raw",
    topic_replication_factor=1,
    topic_disable_leader=True,
    consumer_auto_offset_reset="earliest",
    web_enabled=False,
)
source = app.topic(topic, value_type=bytes)


@app.agent(source)
async def handle(values: faust.Stream[bytes]) -> None:
    """Print values."""
    # sys.stdout goes to the log
    async for value in values:
        print(value.decode(), file=sys.__stdout__, flush=True)


sys.argv[1:] = ["worker", "--loglevel=error", "--without-web"]
app.main()
