"""A cluster of several nodes without sockets: bytes in, bytes out, time by hand."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from builders import requests
from clients.frame_clients import START, Peer, Wire

from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.brokers import PLAINTEXT
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.trace.trace import Trace
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.emulator.broker.connections import Output
    from koordinator.wire.messages.join_group import JoinGroupRequest
    from koordinator.wire.messages.sync_group import SyncGroupRequest

GROUP = "g"
"""A group in partition 3 of 50."""

SESSION_MS = 10_000

FORMING_MS = 100
"""Initial rebalance delay in ms."""


class Nodes(Wire):
    """Nodes 1 to `nodes`, topic t with 4 partitions, and the peers connected to them.

    Of the settings `broker.rack` has the racks of all nodes, separated by commas.
    """

    def __init__(self, nodes: int = 2, start_ms: int = START, **settings: object) -> None:
        self.now = start_ms
        self.wall_us = start_ms * 1000
        self.logged: list[str] = []
        given = {name.replace("_", "."): value for name, value in settings.items()}
        racks = dict(enumerate(filter(None, str(given.pop("broker.rack", "")).split(",")), 1))
        given.setdefault("group.initial.rebalance.delay.ms", FORMING_MS)
        self._given = given
        self.settings, _ = Settings.of("fast", given)
        chance = random.Random(3)

        def new_uuid() -> UUID:
            return UUID(int=chance.getrandbits(128), version=4)

        self._new_uuid = new_uuid
        self.cluster = ClusterState("nodes", self.settings, new_uuid)
        self.trace = Trace(lambda: self.wall_us, topic_name=self.cluster.topics.name_of)
        for node in range(1, nodes + 1):
            self.cluster.register(node, "127.0.0.1", 9091 + node, racks.get(node))
        self._start()
        self.cluster.create_topic("t", 4)
        self.peers: dict[int, Peer] = {}
        self._numbers = count(1)
        self._correlation = 0

    def restart(self, settings: Mapping[str, object]) -> None:
        """Restart all nodes at once on their logs, with additional settings."""
        for peer in self.peers.values():
            peer.closed = peer.closed or "restarted"
        self._given |= settings
        self.settings, _ = Settings.of("fast", self._given)
        self.cluster.settings = self.settings
        self._start()

    def _start(self) -> None:
        self.runtime = ClusterRuntime(
            self.now, self.cluster, self.settings, self._new_uuid, self.trace, self.logged.append
        )
        self.broker = self.runtime  # type: ignore[assignment]

    def connect(self, node: int = 1, listener: str = PLAINTEXT) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self._perform(self.runtime.connected(self.now, peer.number, "/127.0.0.1", node, listener))
        return peer

    def do(self, operation: Callable[..., Iterable[Output]], *arguments: object) -> None:
        """Call an operation of the runtime at the current time."""
        self._perform(operation(self.now, *arguments))

    def request_at(self, node: int, message: Any, version: int) -> Any:
        """Send a request to a node on a new connection; return the response, None if it is parked."""
        return self.ask(self.connect(node), message, version)

    # -- groups ----------------------------------------------------------------------------------------------

    def coordinator(self, node: int, group: str = GROUP, key_type: int = 0) -> tuple[int, int, int]:
        """Return error, node id and port of FindCoordinator."""
        (row,) = self.request_at(
            node, FindCoordinatorRequest(key_type=key_type, coordinator_keys=(group,)), 4
        ).coordinators
        return row.error_code, row.node_id, row.port

    def stable(self, node: int, *instances: str, group: str = GROUP) -> list[str]:
        """Form a stable group of static members at a node, in generation 1; return their member ids."""
        leader, *others = self.formed(node, *instances, group=group)
        given = {each: each.encode() for each in (leader, *others)}
        for member_id, assignments in ((leader, given), *((each, None) for each in others)):
            assert self.request_at(node, syncing(member_id, assignments, group=group), 3).error_code == Error.NONE
        return [leader, *others]

    def formed(self, node: int, *instances: str, group: str = GROUP) -> list[str]:
        """Form generation 1 of static members, without assignment; return their member ids, the leader first."""
        peers = [self.connect(node) for _ in instances]
        for peer, instance in zip(peers, instances, strict=True):
            self.send(peer, self.request(peer, joining(instance, group=group), 5))
        # later joins extend the initial delay once (KIP-134)
        self.wait(2 * FORMING_MS)
        joined = [peer.answers()[-1][1] for peer in peers]
        assert {answer.generation_id for answer in joined} == {1}
        return sorted((answer.member_id for answer in joined), key=lambda each: each != joined[0].leader)

    def heartbeat(self, node: int, member_id: str, generation: int = 1, group: str = GROUP) -> Error:
        """Send a heartbeat and return its error."""
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        return Error(self.request_at(node, request, 3).error_code)

    def commit(self, node: int, offset: int, member_id: str = "", generation: int = 1, group: str = GROUP) -> Error:
        """Commit an offset of t-0, as a member or as a consumer without a group membership."""
        request = requests.offset_commit(group, {("t", 0): offset}, generation if member_id else -1, member_id)
        return Error(self.request_at(node, request, 5).topics[0].partitions[0].error_code)

    def committed(self, node: int, group: str = GROUP) -> int:
        """Return the committed offset of t-0, -1 if there is none, or the negated error code."""
        answer = self.request_at(node, requests.offset_fetch(5, group, [("t", 0)]), 5)
        if answer.error_code:
            return -int(answer.error_code)
        return int(answer.topics[0].partitions[0].committed_offset)


def joining(instance: str | None = None, member_id: str = "", group: str = GROUP) -> JoinGroupRequest:
    """Return a JoinGroup request."""
    return requests.join_group(group, member_id, instance, session_ms=SESSION_MS, protocols=(("range", b"\0\0"),))


def syncing(
    member_id: str, assignments: Mapping[str, bytes] | None = None, generation: int = 1, group: str = GROUP
) -> SyncGroupRequest:
    """Return a SyncGroup request."""
    return requests.sync_group(group, generation, member_id, assignments)
