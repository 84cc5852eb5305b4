"""Members whose requests reach the coordinator without a connection, in an order that the test decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.core.effects import Call
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from koordinator import Cluster
    from koordinator.emulator.core.effects import Effect

CALL = Call(connection=0, correlation_id=0, api_key=11, api_version=3, client_id="app", client_host="/127.0.0.1")


def send(cluster: Cluster, request: object) -> list[Effect]:
    """Let the coordinator handle a request, discard the response, and return the effects."""
    parts = cluster._port.served
    effects: list[Effect] = []

    def handle(now: int) -> None:
        effects.extend(parts.runtime.broker(1).node.coordinator.handle(now, CALL, request))
        parts.runtime.broker(1).perform(now, effects)

    cluster._port.act(handle, "send")
    return effects


def join_request(instance_id: str | None = None) -> JoinGroupRequest:
    """Return a JoinGroup of a consumer of `orders` in group `g`."""
    metadata = write_subscription(ConsumerProtocolSubscription(topics=("orders",)), 0)
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )


def join(cluster: Cluster, *requests: JoinGroupRequest) -> None:
    """Let all members join between two other requests, and wait for the end of the join phase."""
    parts = cluster._port.served

    def handle(now: int) -> None:
        for request in requests:
            parts.runtime.broker(1).perform(now, parts.runtime.broker(1).node.coordinator.handle(now, CALL, request))

    cluster._port.act(handle, "join")
    group = parts.runtime.broker(1).node.coordinator.groups["g"]
    assert cluster._port.wait_until(lambda: group.state.value == "CompletingRebalance", 10, "join")


def sync(cluster: Cluster, member_id: str, partitions: tuple[int, ...] = ()) -> list[Effect]:
    """Send a member's SyncGroup; `partitions` of `orders` are the assignment that a leader gives to that member."""
    held = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=partitions),))
    assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(held, 0))
    generation = cluster.group("g").generation
    return send(
        cluster,
        SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            assignments=(assignment,) if partitions else (),
        ),
    )
