"""A rolling bounce turns dynamic members into static ones (KIP-345); on the way back each bounce leaves a ghost.

A static member does not leave when it ends. Restarted without its instance id it is a new member, and the rebalance
waits for its ghost until that session expires or an administrator removes it.

Evidence: KIP-345, "Upgrade Process", "Downgrade Process"
(https://cwiki.apache.org/confluence/display/KAFKA/KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances).
Reproduced by: `timers`; `expire_session` for the events of 45 s later; the administrator's own `remove_group_members`.
"""

from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import MemberToRemove

pytestmark = pytest.mark.koordinator(topics={"orders": 4})

STATIC = [{"group_instance_id": "svc-0"}, {"group_instance_id": "svc-1"}]


def work(config, stopped):
    with closing(KafkaConsumer("orders", **config)) as consumer:
        consumer.partitions_for_topic("orders")
        while not stopped.is_set():
            consumer.poll(timeout_ms=100)


@pytest.fixture
def run(koordinator, start):
    return lambda identity: start(work, koordinator.client_config("kafka-python", group_id="svc", **identity))


def test_upgrade_by_a_rolling_bounce(koordinator, run):
    group = koordinator.group("svc")
    peer, worker = group.create_puppet("peer").join(), run({})
    group.wait_stable(members=2)
    peer.leave()
    group.create_puppet("peer again", instance_id="svc-1").join()
    group.wait_stable(members=2)
    worker.stop()
    worker = run({"group_instance_id": "svc-0"})
    group.wait_stable(members=2)
    with group.assert_no_rebalance():
        worker.stop()
        run({"group_instance_id": "svc-0", "client_id": "svc-0 again"})
        group.assert_request("SyncGroup", error="NONE", client_id="svc-0 again", timeout=30)
    assert sorted(group.assignment) == ["svc-0", "svc-1"]


def test_downgrade_by_a_rolling_bounce_alone_leaves_a_ghost(koordinator, run):
    group, workers = koordinator.group("svc"), [run(identity) for identity in STATIC]
    group.wait_stable(members=2)
    workers[0].stop()
    run({})
    group.wait_state("PreparingRebalance")
    assert [timer.remaining_ms > 20_000 for timer in group.timers() if timer.kind == "join"] == [True]
    group.expire_session("svc-0")
    group.wait_stable(members=2)


def test_downgrade_removes_the_ghosts(koordinator, run):
    group, workers = koordinator.group("svc"), [run(identity) for identity in STATIC]
    group.wait_stable(members=2)
    with closing(KafkaAdminClient(bootstrap_servers=koordinator.bootstrap_servers)) as admin:
        for worker, identity in zip(workers, STATIC, strict=True):
            worker.stop()
            admin.remove_group_members("svc", [MemberToRemove(**identity)])
            run({})
            group.wait_stable(members=2)
    assert [member.instance_id for member in group.members] == [None, None]
