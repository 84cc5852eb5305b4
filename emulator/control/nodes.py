"""Brokers: what may happen to a node, who leads what, and who coordinates which group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..broker.listeners import host_port
from ..core.cluster import PLAINTEXT
from ..core.data.topic import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output


class Host(Protocol):
    """What opens and closes the entrances of nodes (`hosting.Hosting`)."""

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down in order."""

    async def kill_node(self, node_id: int) -> None:
        """End a node at once."""

    async def start_node(self, node_id: int) -> None:
        """Let a node that is down come up."""

    async def add_node(self) -> int:
        """Take a new node into the cluster; returns its id."""

    async def remove_node(self, node_id: int) -> None:
        """Take a node out of the cluster for good."""


class Nodes:
    """Stops, kills, starts, pauses and moves. Operations that open or close sockets take their time: they are awaited.

    All raise ValueError, with nothing done, where they make no sense: a node that is down cannot be stopped.
    """

    def __init__(self, brokers: ClusterRuntime, host: Host, leave: Callable[[Iterable[Output]], None]) -> None:
        self._brokers = brokers
        self._host = host
        self._leave = leave

    def states(self, now: int) -> list[dict[str, object]]:
        """Every node, by id: `node state`, where a state is up, paused or down."""
        del now
        return [{"node": node, "state": state} for node, state in self._brokers.states.items()]

    def connections(self, now: int) -> list[dict[str, object]]:
        """The clients that are connected: `connection node client_id client_host`; puppets are not among them."""
        del now
        brokers = (self._brokers.broker(node) for node, state in self._brokers.states.items() if state != "down")
        return [
            {"connection": number, "node": broker.node.node_id, "client_id": client_id, "client_host": client_host}
            for broker in brokers
            for number, (client_id, client_host) in broker.clients().items()
        ]

    def are_alone(self, now: int) -> bool:
        """Whether no client is connected."""
        return not self.connections(now)

    def address(self, now: int, *, node: int, listener: str = PLAINTEXT) -> str:
        """`host:port`, as clients that came in by a listener are told; ValueError if there is none of the name."""
        del now
        broker = self._brokers.cluster.brokers.get(node)
        endpoint = broker.endpoints.get(listener) if broker is not None else None
        if endpoint is None:
            raise ValueError(f"node {node} has no listener {listener!r}")
        return host_port(endpoint.host, endpoint.port)

    async def stop(self, *, node: int) -> None:
        """Shut it down in order: others lead what it led, who waits for an answer is told so, its port is closed."""
        await self._host.stop_node(node)

    async def kill(self, *, node: int) -> None:
        """End it at once, without a word to anybody who waits for an answer."""
        await self._host.kill_node(node)

    async def start(self, *, node: int) -> None:
        """Start it again, at its old port. It reads the groups it coordinates from `__consumer_offsets`."""
        await self._host.start_node(node)

    async def add(self) -> int:
        """Take one more node into the cluster, and start it; returns its id."""
        return await self._host.add_node()

    async def remove(self, *, node: int) -> None:
        """Take it out of the cluster for good; it is stopped, if it is not down."""
        await self._host.remove_node(node)

    def pause(self, now: int, *, node: int) -> None:
        """Let it accept and read what comes, and do nothing, while time goes on. It leads what it led."""
        self._leave(self._brokers.pause_node(now, node))

    def resume(self, now: int, *, node: int) -> None:
        """Let it go on: what was due in the meantime happens, then what has come in."""
        self._leave(self._brokers.resume_node(now, node))

    def advertise(self, now: int, *, node: int, host: str, port: int, listener: str = PLAINTEXT) -> None:
        """Tell clients that came in by a listener another address of this node, from now on."""
        del now
        self._brokers.advertise(node, listener, host, port)

    def believe(self, now: int, *, node: int, group: str, coordinator: int | None) -> None:
        """Name another node as a group's coordinator to who asks here, while it is up; None: the right one again."""
        del now
        self._brokers.override_coordinator(node, group, coordinator)

    def coordinator(self, now: int, *, group: str) -> int | None:
        """The node that coordinates a group, whether it exists or not; None while there is none."""
        del now
        node = self._brokers.cluster.coordinator_of(group)
        return None if node == NO_LEADER else node

    def leader(self, now: int, *, topic: str, partition: int) -> int | None:
        """The node that leads a partition; None while there is none, or no such partition."""
        del now
        known = self._brokers.cluster.topics.get(topic)
        node = NO_LEADER if known is None else known.leader(partition)
        return None if node == NO_LEADER else node

    def move_coordinator(self, now: int, *, group: str, to: int, load_ms: int = 0) -> None:
        """Let node `to` coordinate a group, and every group kept in the same partition, after loading for `load_ms`."""
        self._leave(self._brokers.move_coordinator(now, group, to, load_ms))

    def move_leader(self, now: int, *, topic: str, partition: int, to: int) -> None:
        """Let node `to` lead a partition. ValueError if there is no such partition or node, or it is down."""
        self._leave(self._brokers.move_leader(now, topic, partition, to))
