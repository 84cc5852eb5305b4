"""A consumer that loses the right to its group reads on, and its commits fail without an exception.

Fetch needs the right to the topic, commits and heartbeats the one to the group. A commit in the background reports its
refusal to `on_commit` alone. After the next start all of the work is done a second time.

Evidence: https://github.com/confluentinc/librdkafka/issues/3244, https://github.com/oleksiyk/kafka/issues/269.
Reproduced by: `koordinator.revoke("alice", "read", group="svc")` while the consumer polls.
"""

import pytest
from confluent_kafka import Consumer, KafkaException

LIMIT_S = 10

POLLS_MAX = 50

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", config=AUTHORIZER, topics={"orders": 1})


def ignore(error, partitions):
    del error, partitions


def stop_at_refusals(error, partitions):
    del partitions
    if error is not None:
        raise KafkaException(error)


def work(consumer, count):
    """Read some orders, and commit each of them."""
    for _ in range(POLLS_MAX):
        message = consumer.poll(0.2)  # raises what a callback raises
        if message is not None:
            consumer.commit(message)
            count -= 1
        if not count:
            return


@pytest.fixture
def consumer(koordinator, on_commit):
    koordinator.allow("alice", "read", group="svc")
    koordinator.allow("alice", "read", topic="orders")
    more = {"user": "alice", "group_id": "svc", "enable_auto_commit": False, "on_commit": on_commit}
    consumer = Consumer(koordinator.client_config("confluent-kafka", **more))
    consumer.subscribe(["orders"])
    koordinator.produce("orders", "first")
    work(consumer, 1)
    koordinator.group("svc").assert_committed({("orders", 0): 1}, timeout=LIMIT_S)
    koordinator.revoke("alice", "read", group="svc")
    yield consumer
    consumer.close()


@pytest.mark.parametrize("on_commit", [ignore])
def test_wrong_the_worker_reads_on_and_commits_nothing(koordinator, consumer):
    koordinator.produce("orders", "second", "third")
    work(consumer, 2)
    group = koordinator.group("svc")
    group.assert_request("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", timeout=LIMIT_S)
    group.assert_committed({("orders", 0): 1})


@pytest.mark.parametrize("on_commit", [stop_at_refusals])
def test_right_the_worker_fails(koordinator, consumer):
    koordinator.produce("orders", "second")
    with pytest.raises(KafkaException, match="Group authorization failed"):
        work(consumer, 2)
