"""A cache that goes on from where it stopped keeps a deleted user, if the tombstone is compacted away meanwhile.

A tombstone stays in a compacted topic for `delete.retention.ms`, a day by default. A reader that is away for longer
never learns of the deletion. Only a reader that begins with an empty cache has what the topic has.

Evidence: https://kafka.apache.org/documentation/#design_compactionbasics,
https://github.com/IBM/sarama/issues/1745.
Reproduced by: `compact(topic)`: of each key only the last record stays, and no tombstone.
"""

from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition

USERS = TopicPartition("users", 0)


def go_on(config, cache, position):
    """Read from `position` to the end of the topic, and return the position there."""
    with closing(KafkaConsumer(**config)) as consumer:
        consumer.assign([USERS])
        consumer.seek(USERS, position)
        end = consumer.end_offsets([USERS])[USERS]
        while consumer.position(USERS) < end:
            for user in consumer.poll(timeout_ms=100).get(USERS, []):
                if user.value is None:
                    cache.pop(user.key, None)
                else:
                    cache[user.key] = user.value
        return end


def begin_again(config, cache, _position):
    cache.clear()
    return go_on(config, cache, 0)


@pytest.fixture
def config(koordinator):
    koordinator.create_topic("users", partitions=1, configs={"cleanup.policy": "compact"})
    koordinator.produce("users", ("1", "ann"), ("2", "bob"))
    return koordinator.client_config("kafka-python", auto_offset_reset="earliest")


@pytest.mark.parametrize(
    ("come_back", "users"),
    [
        pytest.param(go_on, {b"1": b"ann", b"2": b"bob", b"3": b"eve"}, id="wrong: 1 is deleted"),
        pytest.param(begin_again, {b"2": b"bob", b"3": b"eve"}, id="right"),
    ],
)
def test_a_deletion_while_the_cache_is_away(koordinator, config, come_back, users):
    cache = {}
    position = go_on(config, cache, 0)
    koordinator.produce("users", ("1", None), ("3", "eve"))
    koordinator.compact("users")
    come_back(config, cache, position)
    assert cache == users
