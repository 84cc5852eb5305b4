"""A Quix Streams application that prints each value of a topic."""

import sys

from quixstreams import Application

servers, topic, group = sys.argv[1:]
app = Application(
    broker_address=servers,
    consumer_group=group,
    auto_offset_reset="earliest",
    commit_interval=0.5,
    state_dir=f"state-{group}",
    loglevel="WARNING",
)
app.dataframe(app.topic(topic, value_deserializer="str")).update(lambda value: print(value, flush=True))
app.run()
