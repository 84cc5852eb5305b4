"""The registrations of brokers, with the addresses of their listeners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PLAINTEXT = "PLAINTEXT"
"""The name of the listener that every broker has."""


@dataclass(slots=True)
class Endpoint:
    """The address clients connect to. The port is 0 until the listener is bound."""

    host: str
    port: int


@dataclass(slots=True)
class Registration:
    """A broker of the cluster: its endpoints by listener name; `is_up` if it is not fenced."""

    node_id: int
    endpoints: dict[str, Endpoint]
    rack: str | None = None
    is_up: bool = True


def place_replicas(
    brokers: Mapping[int, Registration], partitions: Iterable[int], replication_factor: int
) -> list[tuple[int, ...]]:
    """Return replicas for partitions: leaders round-robin, fenced brokers last (`StripedReplicaPlacer`)."""
    nodes = sorted(brokers)
    copies = min(replication_factor, len(nodes))
    placed = []
    for partition in partitions:
        turn = partition % len(nodes) if nodes else 0
        in_turn = sorted(nodes[turn:] + nodes[:turn], key=lambda node: not brokers[node].is_up)
        placed.append(tuple(in_turn[:copies]))
    return placed
