"""Operations on nodes: life cycle, advertised addresses, and who leads and coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..broker.listeners import host_port
from ..core.brokers import PLAINTEXT
from ..core.data.topic import NO_LEADER, OFFSETS_TOPIC
from .resolve import topic_named
from .results import ClientConnection, NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output


class Host(Protocol):
    """The owner of the nodes' listening sockets (`server.node_listeners.NodeListeners`)."""

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down in order."""

    async def kill_node(self, node_id: int) -> None:
        """Kill a node."""

    async def start_node(self, node_id: int) -> None:
        """Start a node that is down."""

    async def add_node(self, rack: str | None) -> int:
        """Add a node to the cluster and return its id."""

    async def remove_node(self, node_id: int) -> None:
        """Remove a node from the cluster."""

    def rotate_certificate(self, to: str) -> None:
        """Give the listeners another certificate, a renewed, expired or untrusted one. Raises ValueError."""


class Nodes:
    """Operations on nodes. All raise ValueError for an unknown node, or one in the wrong state."""

    def __init__(self, runtime: ClusterRuntime, host: Host, deliver: Callable[[Iterable[Output]], None]) -> None:
        self._runtime = runtime
        self._host = host
        self._deliver = deliver

    def states(self, _now: int) -> list[NodeState]:
        """Return every node with its state and rack, by id."""
        brokers = self._runtime.cluster.brokers
        return [NodeState(node, state, brokers[node].rack) for node, state in self._runtime.states.items()]

    def connections(self, _now: int) -> list[ClientConnection]:
        """Return the connected clients, without puppets."""
        brokers = (self._runtime.broker(node) for node, state in self._runtime.states.items() if state != "down")
        return [
            ClientConnection(number, broker.node.node_id, client_id, client_host)
            for broker in brokers
            for number, (client_id, client_host) in broker.clients().items()
        ]

    def are_alone(self, now: int) -> bool:
        """Return whether no client is connected."""
        return not self.connections(now)

    def address(self, _now: int, *, node: int, listener: str = PLAINTEXT) -> str:
        """Return the address that a node advertises to clients of a listener, `host:port`.

        Raises ValueError if the node has no such listener.
        """
        broker = self._runtime.cluster.brokers.get(node)
        endpoint = broker.endpoints.get(listener) if broker is not None else None
        if endpoint is None:
            raise ValueError(f"node {node} has no listener {listener!r}")
        return host_port(endpoint.host, endpoint.port)

    async def stop(self, *, node: int) -> None:
        """Shut a node down in order: other nodes take over its partitions, then its port closes.

        Parked requests are answered with an error.
        """
        await self._host.stop_node(node)

    async def kill(self, *, node: int) -> None:
        """Kill a node: its connections close without responses."""
        await self._host.kill_node(node)

    async def start(self, *, node: int) -> None:
        """Start a node again, at its old port. It loads its groups from `__consumer_offsets`."""
        await self._host.start_node(node)

    async def add(self, *, rack: str | None = None) -> int:
        """Add a node to the cluster, start it, and return its id."""
        return await self._host.add_node(rack)

    async def remove(self, *, node: int) -> None:
        """Remove a node from the cluster, and stop it first if it is not down. Raises ValueError for the last node."""
        await self._host.remove_node(node)

    def pause(self, now: int, *, node: int) -> None:
        """Pause a node: it accepts connections and reads requests, but processes none. Its leaderships stay."""
        self._deliver(self._runtime.pause_node(now, node))

    def resume(self, now: int, *, node: int) -> None:
        """Resume a paused node: first its overdue timers fire, then it processes the requests it has read."""
        self._deliver(self._runtime.resume_node(now, node))

    def advertise(self, _now: int, *, node: int, host: str, port: int, listener: str = PLAINTEXT) -> None:
        """Change the address that a node advertises to clients of a listener."""
        self._runtime.advertise(node, listener, host, port)

    def misdirect(self, _now: int, *, node: int, group: str, coordinator: int | None) -> None:
        """Make a node answer FindCoordinator for a group with another node, as long as that node is up.

        None restores the right answer.
        """
        self._runtime.override_coordinator(node, group, coordinator)

    def coordinator(self, _now: int, *, group: str) -> int | None:
        """Return the node that coordinates a group, which need not exist; None if no node does."""
        node = self._runtime.cluster.coordinator_of(group)
        return None if node == NO_LEADER else node

    def leader(self, _now: int, *, topic: str, partition: int) -> int | None:
        """Return the node that leads a partition of a topic; None without a leader or without such a partition."""
        node = topic_named(self._runtime, topic).leader(partition)
        return None if node == NO_LEADER else node

    def move_coordinator(self, now: int, *, group: str, to: int, load_ms: int = 0) -> None:
        """Make node `to` the coordinator of a group, and of every group in the same partition.

        It answers COORDINATOR_LOAD_IN_PROGRESS for `load_ms` milliseconds.
        """
        self._deliver(self._runtime.move_coordinator(now, group, to, load_ms))

    def move_leader(self, now: int, *, topic: str, partition: int, to: int) -> None:
        """Make node `to` the leader of a partition. Raises ValueError if either is unknown or the node is down."""
        if topic != OFFSETS_TOPIC:  # it is created when it is needed
            topic_named(self._runtime, topic)
        self._deliver(self._runtime.move_leader(now, topic, partition, to))
