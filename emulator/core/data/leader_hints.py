"""Hints to the current leader in the response of a broker that does not lead a partition (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cluster import ClusterState, Endpoint, Registration
    from .topic import Topic


class LeaderHints:
    """The leaders named in one response, to a client of `listener`."""

    def __init__(self, cluster: ClusterState, listener: str) -> None:
        self._cluster = cluster
        self._listener = listener
        self._leaders: dict[int, None] = {}

    def leader(self, topic: Topic, partition: int) -> tuple[int, int]:
        """Return the leader's node id and epoch, and add the node to `nodes`."""
        node_id = topic.leaders[partition]
        self._leaders[node_id] = None
        return node_id, topic.epochs[partition]

    def nodes(self) -> list[tuple[Registration, Endpoint]]:
        """Return the named leaders that the client can reach, with their addresses."""
        reachable = self._cluster.reachable_brokers(self._listener) if self._leaders else ()
        return [(broker, endpoint) for broker, endpoint in reachable if broker.node_id in self._leaders]
