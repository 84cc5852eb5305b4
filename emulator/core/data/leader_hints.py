"""Who asked the wrong broker is told who leads the partition, and where that is, in the same answer (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cluster import ClusterState, Endpoint, Registration
    from .topic import Topic


class LeaderHints:
    """The leaders one answer names, to a client that came in by `listener`."""

    def __init__(self, cluster: ClusterState, listener: str) -> None:
        self._cluster = cluster
        self._listener = listener
        self._named: dict[int, None] = {}

    def leader(self, topic: Topic, partition: int) -> tuple[int, int]:
        """The leader's node id and its epoch; the node is among the `nodes` from now on."""
        node_id = topic.leaders[partition]
        self._named[node_id] = None
        return node_id, topic.epochs[partition]

    def nodes(self) -> list[tuple[Registration, Endpoint]]:
        """The leaders that were named and can be reached, and where."""
        reachable = self._cluster.reachable_brokers(self._listener) if self._named else ()
        return [(broker, endpoint) for broker, endpoint in reachable if broker.node_id in self._named]
