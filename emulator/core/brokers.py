"""The brokers of a cluster, with the addresses of their listeners (`ClusterControlManager`)."""

from __future__ import annotations

from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from koordinator.wire.values import mutable

from .data.topic import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PLAINTEXT = "PLAINTEXT"
"""The name of the listener that every broker has."""


@mutable
class Endpoint:
    """The address clients connect to. The port is 0 until the listener is bound."""

    host: str
    port: int


@mutable
class Registration:
    """A broker of the cluster: its endpoints by listener name; `is_up` if it is not fenced."""

    node_id: int
    endpoints: dict[str, Endpoint]
    rack: str | None = None
    is_up: bool = True


class Brokers(dict[int, Registration]):
    """The registered brokers by node id, fenced ones included."""

    @property
    def controller_id(self) -> int:
        """The lowest node id of the brokers that are up, reported as the controller; -1 without any."""
        return min((broker.node_id for broker in self.values() if broker.is_up), default=-1)

    def is_up(self, node_id: int) -> bool:
        """Return whether the broker exists and is not fenced."""
        return node_id in self and self[node_id].is_up

    def up(self, node_ids: Iterable[int]) -> tuple[int, ...]:
        """Return those of the brokers that are up. Replicas that are up are in sync."""
        return tuple(node_id for node_id in node_ids if self.is_up(node_id))

    def first_up(self, replicas: Iterable[int]) -> int:
        """Return the first of the replicas that is up, or NO_LEADER."""
        return next((replica for replica in replicas if self.is_up(replica)), NO_LEADER)

    def endpoint(self, node_id: int, listener: str) -> Endpoint | None:
        """Return the address of a broker for clients of this listener, or None if they cannot reach it."""
        return self[node_id].endpoints.get(listener) if self.is_up(node_id) else None

    def reachable(self, listener: str) -> Iterator[tuple[Registration, Endpoint]]:
        """Yield the brokers that clients of this listener can reach, with their addresses."""
        for broker in self.values():
            endpoint = broker.endpoints.get(listener)
            if broker.is_up and endpoint is not None:
                yield broker, endpoint

    def unreachable(self, node_ids: Iterable[int], listener: str) -> tuple[int, ...]:
        """Return those of the brokers that clients of this listener cannot reach."""
        return tuple(node_id for node_id in node_ids if self.endpoint(node_id, listener) is None)

    def place_replicas(self, partitions: Iterable[int], replication_factor: int) -> list[tuple[int, ...]]:
        """Return replicas for partitions: leaders round-robin, the others in turn from each other rack.

        Fenced brokers come last (`StripedReplicaPlacer`).
        """
        nodes = sorted(self)
        copies = min(replication_factor, len(nodes))
        placed = []
        for partition in partitions:
            turn = partition % len(nodes) if nodes else 0
            in_turn = nodes[turn:] + nodes[:turn]
            chosen = (each for is_up in (True, False) for each in self._across_racks(in_turn, is_up=is_up))
            placed.append(tuple(islice(chosen, copies)))
        return placed

    def _across_racks(self, nodes: Iterable[int], *, is_up: bool) -> Iterator[int]:
        """Yield the first of the nodes in each rack, then the second ones, and so on: those that are up, or not."""
        by_rack: dict[str | None, list[int]] = {}
        for node in nodes:
            if self[node].is_up is is_up:
                by_rack.setdefault(self[node].rack, []).append(node)
        return (node for row in zip_longest(*by_rack.values()) for node in row if node is not None)
