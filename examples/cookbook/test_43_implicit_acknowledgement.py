"""A worker that fails on a job loses it: by default the next call accepts all that the last poll returned.

With `share.acknowledgement.mode=implicit`, the default, poll, commit and close accept the records of the last poll,
handled or not. A worker that catches an error and goes on has said that the job is done.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka,
https://kafka.apache.org/documentation/#consumerconfigs_share.acknowledgement.mode.
Reproduced by: a job that fails at its first delivery.
"""

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer


def handle(message):
    if message.delivery_count() == 1:
        raise ConnectionError("the printer is busy")
    return message.value()


def print_implicitly(_consumer, message, printed):
    try:
        printed.append(handle(message))
    except ConnectionError:
        printed.append(b"failed")


def print_explicitly(consumer, message, printed):
    try:
        printed.append(handle(message))
        consumer.acknowledge(message)
    except ConnectionError:
        printed.append(b"failed")
        consumer.acknowledge(message, AcknowledgeType.RELEASE)


@pytest.mark.parametrize(
    ("mode", "work", "results"),
    [
        pytest.param("implicit", print_implicitly, [b"failed"], id="wrong: the job is gone"),
        pytest.param("explicit", print_explicitly, [b"failed", b"label"], id="right"),
    ],
)
def test_a_job_that_fails_once(koordinator, mode, work, results):
    koordinator.create_topic("jobs", partitions=1)
    group = koordinator.group("printers")
    consumer = ShareConsumer(
        {
            "bootstrap.servers": koordinator.bootstrap_servers,
            "group.id": "printers",
            "share.acknowledgement.mode": mode,
        }
    )
    consumer.subscribe(["jobs"])
    while not group.share_positions():
        consumer.poll(0.1)
    printed = []
    koordinator.produce("jobs", "label")
    # until the group has finished the job, in one way or the other
    while group.share_positions()[0].start_offset == 0:
        for message in consumer.poll(0.5):
            work(consumer, message, printed)
    consumer.close()
    assert printed == results
