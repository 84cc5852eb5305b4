"""A lag monitor counts records that retention has removed: the commit of an idle group is below the start of the log.

The end of the log minus the committed offset is then a backlog of which nothing can be read; an alert fires, and an
autoscaler starts workers that have nothing to do. Count from the start of the log where it is above the commit.

Evidence: https://github.com/redpanda-data/redpanda/issues/30624,
https://github.com/braedon/prometheus-kafka-consumer-group-exporter/issues/42.
Reproduced by: `expire_records(topic, before=…)`: the retention of a week passes now.
"""

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec


def lag_since_the_commit(admin, group):
    ends = bounds(admin, "orders", OffsetSpec.latest())
    return {number: ends[number] - offset for number, offset in committed(admin, group).items()}


def lag(admin, group):
    """Count what is still there to be read."""
    starts, ends = (bounds(admin, "orders", spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
    return {number: ends[number] - max(offset, starts[number]) for number, offset in committed(admin, group).items()}


def committed(admin, group):
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(10)
    return {row.partition: row.offset for row in answer.topic_partitions}


def bounds(admin, topic, spec):
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    answers = admin.list_offsets({TopicPartition(topic, number): spec for number in partitions})
    return {partition.partition: answer.result(10).offset for partition, answer in answers.items()}


@pytest.mark.parametrize(
    ("monitor", "said"),
    [
        pytest.param(lag_since_the_commit, {0: 90, 1: 5}, id="wrong: 90 records that are gone"),
        pytest.param(lag, {0: 0, 1: 5}, id="right"),
    ],
)
def test_the_lag_of_a_partition_that_retention_has_emptied(koordinator, monitor, said):
    koordinator.create_topic("orders", partitions=2)
    koordinator.produce("orders", [{"partition": 0, "value": "old"}] * 100 + [{"partition": 1, "value": "new"}] * 120)
    koordinator.group("svc").set_offsets({("orders", 0): 10, ("orders", 1): 115})
    koordinator.expire_records("orders", before=100)
    admin = AdminClient({"bootstrap.servers": koordinator.bootstrap_servers})
    assert monitor(admin, "svc") == said
