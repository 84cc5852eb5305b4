"""A lag monitor that reads only committed offsets misses the partitions that no consumer has ever read.

A partition without a committed offset is absent from the OffsetFetch response, or -1001 in librdkafka. Left out, it
hides the worst lag of all; taken as a number, it adds a lag of 1,001.

Evidence: https://github.com/seglo/kafka-lag-exporter/issues/290,
https://github.com/danielqsj/kafka_exporter/issues/226, https://github.com/provectus/kafka-ui/issues/3867.
Reproduced by: `load_groups`: members, some without partitions, and offsets, some of them missing.
"""

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

WORLD = [
    {
        "group_id": "svc",
        "members": [{"instance_id": "a", "assignment": {"orders": [0, 1, 2]}}, {"instance_id": "idle"}],
    },
    {"group_id": "svc", "topic": "orders", "partition": 0, "offset": 10},
    {"group_id": "svc", "topic": "orders", "partition": 1, "offset": 4},
]


def lag_of_what_was_committed(admin, group):
    ends = bounds(admin, "orders", OffsetSpec.latest())
    offsets = committed(admin, ConsumerGroupTopicPartitions(group))
    return {number: ends[number] - offset for number, offset in offsets.items()}


def lag(admin, group):
    """Include partitions without a committed offset: they are unread from their first record on."""
    starts, ends = (bounds(admin, "orders", spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
    partitions = [TopicPartition("orders", number) for number in ends]
    offsets = committed(admin, ConsumerGroupTopicPartitions(group, partitions))
    return {number: ends[number] - (offsets[number] if offsets[number] >= 0 else starts[number]) for number in ends}


def committed(admin, request):
    answer = admin.list_consumer_group_offsets([request])[request.group_id].result(10)
    return {row.partition: row.offset for row in answer.topic_partitions}


def bounds(admin, topic, spec):
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    answers = admin.list_offsets({TopicPartition(topic, number): spec for number in partitions})
    return {partition.partition: answer.result(10).offset for partition, answer in answers.items()}


@pytest.mark.parametrize(
    ("monitor", "said"),
    [
        pytest.param(lag_of_what_was_committed, {0: 0, 1: 6}, id="wrong: nothing of partition 2"),
        pytest.param(lag, {0: 0, 1: 6, 2: 10}, id="right"),
    ],
)
def test_the_lag_of_a_partition_without_commits(koordinator, monitor, said):
    koordinator.create_topic("orders", partitions=3, records=30)
    koordinator.load_groups(WORLD)
    admin = AdminClient({"bootstrap.servers": koordinator.bootstrap_servers})
    assert monitor(admin, "svc") == said
    assert koordinator.group("svc").state == "Stable"
