"""The interval between two targets of a consumer group (KIP-1263)."""

from __future__ import annotations

from brokers.cluster import GROUP
from brokers.group_broker import GroupBroker

from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def joined(here: GroupBroker, member_id: str) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, rebalance_timeout_ms=1_000, subscribed_topic_names=("t",),
        topic_partitions=(),
    )  # fmt: skip
    assert here.request_at(here.node, request, 1).error_code == 0


def test_a_restart_after_an_advance_does_not_postpone_the_next_target() -> None:
    here = GroupBroker()
    here.advance("7d")
    joined(here, "a")
    here.restart({})
    # the record has the time of the advanced clock, which no log has
    here.cluster.clocks.clear()
    here._start()
    here.wait(2_000)
    joined(here, "b")
    assert here.group.target_epoch == here.group.epoch
    assert here.group.targets.keys() == {"a", "b"}
