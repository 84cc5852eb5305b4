"""A group names a topic for its dead letters, and loses them, because the topic does not take any.

Since Kafka 4.4 a share group may name a topic for the records that its workers reject. The topic takes them only
with `errors.deadletterqueue.group.enable=true`, and if its name begins with `dlq.`. Otherwise the broker archives
the record all the same, and only its log says so.

Evidence: https://cwiki.apache.org/confluence/pages/viewpage.action?pageId=320278138 (dead letters, KIP-1191).
Reproduced by: a record that no worker can read, and the records of the topic.
"""

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

DEAD_LETTERS = {"errors.deadletterqueue.topic.name": "dlq.orders", "errors.deadletterqueue.copy.record.enable": "true"}


def keep_dead_letters(bootstrap_servers, group_id):
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in DEAD_LETTERS.items()
    ]
    group = ConfigResource(ConfigResource.Type.GROUP, group_id, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.incremental_alter_configs([group])[group].result(10)


@pytest.fixture
def consumer(koordinator):
    koordinator.create_topic("orders", partitions=1)
    keep_dead_letters(koordinator.bootstrap_servers, "workers")
    consumer = ShareConsumer(
        {
            "bootstrap.servers": koordinator.bootstrap_servers,
            "group.id": "workers",
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe(["orders"])
    while not koordinator.group("workers").share_positions():
        consumer.poll(0.1)
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("configs", "dead_letters"),
    [
        pytest.param({}, [], id="wrong: the order is gone"),
        pytest.param({"errors.deadletterqueue.group.enable": "true"}, [b"{poison"], id="right"),
    ],
)
def test_an_order_that_no_worker_can_read(koordinator, consumer, configs, dead_letters):
    dead = koordinator.create_topic("dlq.orders", partitions=1, configs=configs)
    koordinator.produce("orders", "{poison")
    order = next(iter(consumer.poll(10)))
    consumer.acknowledge(order, AcknowledgeType.REJECT)
    assert not any(consumer.commit_sync().values())
    (position,) = koordinator.group("workers").share_positions()
    assert position.start_offset == 1
    assert [record.value for record in dead.records()] == dead_letters
