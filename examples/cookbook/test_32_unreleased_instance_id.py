"""A worker that is killed and restarted in place finds its instance id in use (KIP-848): a fatal error, not a retry.

In a consumer group an instance id is free only after its member has left or its session has ended. A restarted worker
gets UNRELEASED_INSTANCE_ID, and its client is dead from then on. A loop that logs the error and polls on looks
healthy and reads nothing. So end the process on a fatal error, and let it be restarted until the id is free.

Evidence: https://github.com/PostHog/posthog/pull/65809, https://github.com/confluentinc/librdkafka/pull/4994.
Reproduced by: a static puppet that is killed; `expire_session` for the end of its session 45 s later.
"""

import threading

import pytest
from confluent_kafka import Consumer, KafkaException

pytestmark = pytest.mark.koordinator(
    topics={"orders": 4},
    config={"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0},
)

POLLS = 20


def log(error):
    print("the client will retry:", error)


def end_if_fatal(error):
    if error.name() == "_FATAL":
        raise KafkaException(error)
    log(error)


def work(config, handle, polls, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    try:
        while not stopped.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error():
                handle(message.error())
            polls.release()
    finally:
        consumer.close()


@pytest.fixture
def group(koordinator):
    """Return a group whose static member was killed."""
    group = koordinator.group("svc")
    group.create_puppet("svc-0", instance_id="svc-0", group_protocol="consumer").join()
    group.wait_stable(members=1)
    group.puppets["svc-0"].stop()
    return group


@pytest.fixture
def config(koordinator):
    return koordinator.client_config(
        "confluent-kafka", group_id="svc", group_protocol="consumer", group_instance_id="svc-0", client_id="worker"
    )


def test_a_worker_that_polls_on_never_joins(group, config, start):
    polls = threading.Semaphore(0)
    start(work, config, log, polls)
    group.assert_request("ConsumerGroupHeartbeat", client_id="worker", error="UNRELEASED_INSTANCE_ID", timeout=30)
    group.expire_session("svc-0")
    # many polls later
    assert all(polls.acquire(timeout=30) for _ in range(POLLS))
    assert group.members == []


def test_a_worker_that_ends_is_restarted_and_joins(group, config, start):
    polls = threading.Semaphore(0)
    with pytest.raises(KafkaException, match="instance ID is still used"):
        start(work, config, end_if_fatal, polls).result()
    group.expire_session("svc-0")
    start(work, config, end_if_fatal, polls)
    group.wait_stable(members=1, all_owned=True)
