"""The types of the fixtures that start clusters, and the handle of a cluster that several tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from koordinator.emulator.control.inspect.topics import Topics

from .cluster import Cluster

if TYPE_CHECKING:
    from .port import Port


class ClusterFactory(Protocol):
    """The type of the fixture `koordinator_factory`."""

    def __call__(self, **arguments: object) -> Cluster:
        """Start one more cluster; the arguments are those of `Emulator`, and `leaks`."""


class SessionCluster(Cluster):
    """A cluster that several tests share, with names of their own for one of them."""

    def __init__(self, port: Port, suffix: str) -> None:
        super().__init__(port)
        self._suffix = suffix

    def name(self, base: str) -> str:
        """Return the name of a group or a topic of this test, `orders-5f2a90c1`: the same for each call."""
        return f"{base}-{self._suffix}"

    def names(self) -> set[str]:
        """Return the names of all groups and topics of the cluster, as in `topic 'orders'`."""
        topics = (f"topic {each.topic!r}" for each in self._port.call(Topics.describe))
        return {*topics, *(f"group {each.id!r}" for each in self.groups())}
