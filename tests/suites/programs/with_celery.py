"""A Celery application whose broker is Kafka; `send COUNT` sends tasks, otherwise a worker prints their values."""

import sys

from celery import Celery

servers, topic, _group, *count = sys.argv[1:]
app = Celery("app", broker=f"confluentkafka://{servers}", task_ignore_result=True)
app.conf.task_default_queue = topic
app.conf.broker_connection_retry_on_startup = True
# print to stdout, not to the log
app.conf.worker_redirect_stdouts = False


@app.task(name="handle")
def handle(value: str) -> None:
    """Print a value."""
    print(value, flush=True)


if count:
    for number in range(*map(int, count)):
        handle.delay(f"v{number}")
else:
    app.worker_main(
        ["worker", "--pool=solo", "--loglevel=ERROR", "--without-mingle", "--without-gossip", "--without-heartbeat"]
    )
