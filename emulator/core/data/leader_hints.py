"""Hints to the current leader in the response of a broker that does not lead a partition (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.fetch import LeaderIdAndEpoch, NodeEndpoint

if TYPE_CHECKING:
    from ..cluster import ClusterState
    from .topic import TopicState


class LeaderHints:
    """The leaders named in one response, to a client of `listener`."""

    def __init__(self, cluster: ClusterState, listener: str) -> None:
        self._cluster = cluster
        self._listener = listener
        self._leaders: dict[int, None] = {}

    def leader(self, topic: TopicState, partition: int) -> LeaderIdAndEpoch:
        """Return the leader, and add its node to `nodes`."""
        node_id = topic.leaders[partition]
        self._leaders[node_id] = None
        return LeaderIdAndEpoch(leader_id=node_id, leader_epoch=topic.epochs[partition])

    def nodes(self) -> tuple[NodeEndpoint, ...]:
        """Return the addresses of the named leaders that the client can reach."""
        reachable = self._cluster.brokers.reachable(self._listener) if self._leaders else ()
        return tuple(
            NodeEndpoint(node_id=broker.node_id, host=at.host, port=at.port, rack=broker.rack)
            for broker, at in reachable
            if broker.node_id in self._leaders
        )
