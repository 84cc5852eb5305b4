"""Members whose requests reach the coordinator without a connection, in an order that the test decides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from builders import requests

from koordinator.emulator.core.effects import Call
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    write_assignment,
)

if TYPE_CHECKING:
    from koordinator import Cluster
    from koordinator.emulator.core.effects import Effect
    from koordinator.wire.messages.join_group import JoinGroupRequest

JOIN = Call(connection=0, correlation_id=0, api_key=11, api_version=3, client_id="app", client_host="/127.0.0.1")
SYNC = replace(JOIN, api_key=14)


def join_request(instance_id: str | None = None) -> JoinGroupRequest:
    """Return a JoinGroup of a consumer of `orders` in group `g`."""
    protocols = (("range", requests.subscription("orders", version=0)),)
    return requests.join_group("g", "", instance_id, session_ms=45_000, rebalance_ms=60_000, protocols=protocols)


def join(cluster: Cluster, *requests: JoinGroupRequest) -> None:
    """Let all members join between two other requests, and wait for the end of the join phase."""
    parts = cluster._port.served

    def handle(now: int) -> None:
        for request in requests:
            parts.runtime.broker(1).perform(now, parts.runtime.broker(1).node.coordinator.handle(now, JOIN, request))

    cluster._port.act(handle, "join")
    group = parts.runtime.broker(1).node.coordinator.groups["g"]
    assert cluster._port.wait_until(lambda: group.state.value == "CompletingRebalance", 10, "join")


def sync(cluster: Cluster, member_id: str, partitions: tuple[int, ...] = ()) -> list[Effect]:
    """Let the coordinator handle a member's SyncGroup, discard the response, and return the effects.

    `partitions` of `orders` are the assignment that a leader gives to that member.
    """
    parts = cluster._port.served
    effects: list[Effect] = []
    held = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=partitions),))
    plan = {member_id: write_assignment(held, 0)} if partitions else {}
    request = requests.sync_group("g", cluster.group("g").generation, member_id, plan)

    def handle(now: int) -> None:
        effects.extend(parts.runtime.broker(1).node.coordinator.handle(now, SYNC, request))
        parts.runtime.broker(1).perform(now, effects)

    cluster._port.act(handle, "sync")
    return effects
