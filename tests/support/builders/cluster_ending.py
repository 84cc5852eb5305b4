"""The end of a run of the fuzzer on a cluster: the disturbances end, and nothing may wait or be left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders.cluster_audits import led_groups
from builders.random_operations import EVERYTHING
from koordinator.emulator.core.data.topic import NO_LEADER
from koordinator.emulator.core.data.write_markers import is_answered
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from builders.cluster_ring import ClusterRing

LONG_MS = 3_600_000
SETTLING_ROUNDS = 30


def end(ring: ClusterRing) -> None:
    """End all disturbances, and check that nothing waits, and that nothing but empty groups is left."""
    if ring.files is not None:
        ring.files.errors = set()
    ring.settle()
    for node_id, state in list(ring.runtime.states.items()):
        if state == "paused":
            ring.perform("nodes.resume", {"node": node_id})
        elif state == "down":
            ring.perform("nodes.start", {"node": node_id})
        ring.settle()
    assert ring.perform("snapshots.reset", {"scope": EVERYTHING}), "the disturbances go on"
    ring.settle()
    ring.pass_time(6_000)
    for group in ("g", "h"):
        ring.perform("verbs.thaw", {"group": group})
        ring.perform("clocks.set_mode", {"group": group, "mode": "real"})
        ring.settle()
    check_assignments(ring)
    for _ in range(SETTLING_ROUNDS):
        ring.pass_time(LONG_MS // SETTLING_ROUNDS)
        ring.settle()
        ring.listen()
    superseded = {event["conn_id"] for event in ring.trace.events() if event["kind"] == "superseded"}
    for peer in ring.alive:
        waits_for = ring.asked[peer.number, next(iter(peer.sent))] if peer.sent else None
        is_settled = waits_for is None or peer.number in superseded or _may_wait_for_ever(ring, waits_for)
        assert is_settled, f"{peer.number} waits for {waits_for}"
    for peer in list(ring.alive):
        ring.drop(peer)
    ring.settle()
    ring.runtime.failures.check()
    for broker in ring.runtime:
        # those of brokers have negative numbers
        assert max(broker._connections, default=-1) < 0, "connections are left over"
        node = broker.node
        assert not node.data.fetches.parked
        assert not node.coordinator.store.writes, "writes are left over"
        for group in node.coordinator.groups.values():
            assert not group.members, f"{group} has members"
            assert not group.held_requests, f"{group} holds requests"


def _may_wait_for_ever(ring: ClusterRing, request: object) -> bool:
    """Return whether Kafka would not answer a request, at one of the nodes: leaders may have changed since."""
    nodes = ring.cluster.brokers
    return isinstance(request, WriteTxnMarkersRequest) and not all(
        is_answered(ring.cluster, node_id, request) for node_id in nodes
    )


def _has_given_up_a_target(ring: ClusterRing, group_id: str) -> bool:
    """Return whether since the last target a member took the place of a static one, with its target instead of its own.

    As in Kafka nobody has the partitions of the former target until the next epoch.
    """
    given_up, replaced = False, None
    for event in ring.trace.events():
        if event.get("group_id") != group_id or event["kind"] not in ("member", "target"):
            continue
        is_new = event.get("change") == "added" and event.get("instance_id") == replaced
        given_up = event["kind"] != "target" and (given_up or (replaced is not None and not is_new))
        replaced = event.get("instance_id") if event.get("change") == "replaced" else None
    return given_up or replaced is not None


def check_assignments(ring: ClusterRing) -> None:
    """Check that the target of each consumer group has every partition of its topics, after some heartbeats."""
    for group in led_groups(ring.runtime):
        if not isinstance(group, ConsumerGroup):
            continue
        for _ in range(4):
            ring.pass_time(6_000)
            ring.settle()
            for member in list(group.members.values()):
                node_id = ring.cluster.coordinator_of(group.id)
                if node_id == NO_LEADER or member.classic is not None or member.has_left():
                    continue
                request = ConsumerGroupHeartbeatRequest(
                    group_id=group.id, member_id=member.id, member_epoch=member.epoch,
                    instance_id=member.instance_id, topic_partitions=None,
                )  # fmt: skip
                peer = ring.connect(node_id)
                ring.ask_later(peer, request, 1)
                ring.settle()
                ring.drop(peer)
        if not any(each is group for each in led_groups(ring.runtime)):
            # it has become a classic group
            continue
        if not any(member.classic is None and not member.has_left() for member in group.members.values()):
            continue
        if _has_given_up_a_target(ring, group.id):
            continue
        assigned = {
            (topic, partition)
            for target in group.targets.values()
            for topic, partitions in target.items()
            for partition in partitions
        }
        for name in sorted({name for member in group.members.values() for name in group.topics_of(member)}):
            topic = ring.cluster.topics.get(name)
            for partition in range(0 if topic is None else len(topic.logs)):
                assert (topic.topic_id, partition) in assigned, f"{name}-{partition} of {group} is not assigned"
