"""A rolling bounce of static members needs no rebalance (KIP-345), unless each start generates a new instance id.

`group.instance.id` must be the name of the place (a StatefulSet's `svc-0`), not of the process. With a random one each
start adds a member, and the rebalance waits for its predecessor, which has not left, until that session expires.

Evidence: https://github.com/confluentinc/confluent-kafka-go/issues/494, https://github.com/twmb/franz-go/issues/931,
https://github.com/thomhurst/Dekaf/issues/215.
Reproduced by: `assert_no_rebalance`; `timers`, and `expire_session` for the events of 45 s later.
"""

import uuid

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.koordinator(topics={"orders": 4})


def name_of_the_process(place):
    return f"svc-{place}-{uuid.uuid4()}"


def name_of_the_place(place):
    return f"svc-{place}"


def work(config, stopped):
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    while not stopped.is_set():
        consumer.poll(0.1)
    consumer.close()


@pytest.fixture
def deploy(koordinator, start):
    """Start two workers of release v1; return a function that replaces one of them by v2."""

    def deploy(name):
        def run(release, place):
            who = {"client_id": f"{release}-{place}", "group_instance_id": name(place)}
            return start(work, koordinator.client_config("confluent-kafka", group_id="svc", **who))

        workers = [run("v1", place) for place in (0, 1)]
        koordinator.group("svc").wait_stable(members=2)

        def replace(place):
            workers[place].stop()
            run("v2", place)

        return replace

    return deploy


def test_an_instance_id_per_process_leaves_a_ghost(koordinator, deploy):
    replace, group = deploy(name_of_the_process), koordinator.group("svc")
    replace(0)
    group.wait_state("PreparingRebalance")
    # until max.poll.interval.ms or the ghost's session ends
    assert [timer.remaining_ms > 20_000 for timer in group.timers() if timer.kind == "join"] == [True]
    group.expire_session("v1-0")
    group.wait_stable(members=2)


def test_an_instance_id_per_place_keeps_its_partitions(koordinator, deploy):
    replace, group = deploy(name_of_the_place), koordinator.group("svc")
    with group.assert_no_rebalance():
        for place in (0, 1):
            replace(place)
            group.assert_request("SyncGroup", error="NONE", client_id=f"v2-{place}", timeout=30)
    assert sorted(group.assignment) == ["svc-0", "svc-1"]
