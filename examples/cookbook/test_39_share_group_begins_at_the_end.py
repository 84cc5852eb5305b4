"""Jobs that are queued before the first worker starts are never delivered.

A new share group begins at the end of a topic, and `auto.offset.reset` of a consumer has no meaning for it. The
start is a setting of the group, `share.auto.offset.reset`, that an admin client changes before the first worker.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka,
https://kafka.apache.org/documentation/#group_configs.
Reproduced by: records that are there before the group is.
"""

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType


def use_defaults(_servers):
    pass


def begin_at_the_start(servers):
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, "workers", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    (changed,) = admin.incremental_alter_configs([group]).values()
    changed.result(10)


@pytest.fixture
def consumer(koordinator):
    consumer = ShareConsumer({"bootstrap.servers": koordinator.bootstrap_servers, "group.id": "workers"})
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("prepare", "jobs"),
    [
        pytest.param(use_defaults, [b"new"], id="wrong: the old job is skipped"),
        pytest.param(begin_at_the_start, [b"old", b"new"], id="right"),
    ],
)
def test_jobs_wait_for_the_first_worker(koordinator, consumer, prepare, jobs):
    koordinator.create_topic("jobs", partitions=1)
    koordinator.produce("jobs", "old")
    prepare(koordinator.bootstrap_servers)
    consumer.subscribe(["jobs"])
    done = []
    while not koordinator.group("workers").share_positions():
        done += [message.value() for message in consumer.poll(0.1)]
    koordinator.produce("jobs", "new")
    while b"new" not in done:
        done += [message.value() for message in consumer.poll(1)]
    assert done == jobs
