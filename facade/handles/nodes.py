"""The handle of a node: its life cycle, and the addresses and coordinators that it reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from koordinator.emulator.control.nodes import Nodes
from koordinator.emulator.core.brokers import PLAINTEXT

from .names import GroupLike, NodeHandle, NodeLike, group_id_of, node_id_of
from .renames import renamed

if TYPE_CHECKING:
    from .port import Port


class Node(NodeHandle):
    """One broker of a cluster. Handles of the same node are equal, and the steps of a node return it.

    Every method may be called from any thread. An impossible operation, such as a second `stop`, raises ValueError and
    changes nothing; every operation raises ClusterStopped after the cluster has stopped.
    """

    @property
    def state(self) -> str:
        """up, paused, down, or removed."""
        return next((each.state for each in self._port.call(Nodes.states) if each.node == self.id), "removed")

    @property
    def rack(self) -> str | None:
        """Its rack (`broker.rack`); None without one, or for a removed node."""
        return next((each.rack for each in self._port.call(Nodes.states) if each.node == self.id), None)

    def address(self, listener: str = PLAINTEXT) -> str:
        """Return the address that the node advertises to clients of a listener, `host:port`.

        Raises ValueError if the node has no such listener.
        """
        return self._port.call(Nodes.address, node=self.id, listener=listener)

    def stop(self) -> Self:
        """Shut the node down in order: other nodes take over its partitions, and its port closes.

        A partition without another replica has no leader until the node starts again.
        """
        self._port.call(Nodes.stop, node=self.id)
        return self

    def kill(self) -> Self:
        """Kill the node: its connections close without responses."""
        self._port.call(Nodes.kill, node=self.id)
        return self

    def start(self) -> Self:
        """Start the node again, at its old port. It loads its groups from `__consumer_offsets`."""
        self._port.call(Nodes.start, node=self.id)
        return self

    def remove(self) -> None:
        """Remove the node from the cluster, and stop it first if it is not down.

        As in Kafka, no partition is moved first: a partition without another replica has no leader until a test moves
        it.
        """
        self._port.call(Nodes.remove, node=self.id)

    def pause(self) -> Self:
        """Pause the node: it accepts connections and reads requests, but processes none. Its leaderships stay."""
        self._port.call(Nodes.pause, node=self.id)
        return self

    def resume(self) -> Self:
        """Resume the node: first its overdue timers fire, then it processes the requests it has read."""
        self._port.call(Nodes.resume, node=self.id)
        return self

    def advertise(self, host: str, port: int, listener: str = PLAINTEXT) -> Self:
        """Change the address that the node advertises to clients of a listener."""
        self._port.call(Nodes.advertise, node=self.id, host=host, port=port, listener=listener)
        return self

    def misdirect(self, group: GroupLike, coordinator: NodeLike | None) -> Self:
        """Make the node answer FindCoordinator for a group with another node, as long as that node is up.

        None restores the right answer.
        """
        node_id = None if coordinator is None else node_id_of(coordinator)
        self._port.call(Nodes.misdirect, node=self.id, group=group_id_of(group), coordinator=node_id)
        return self

    believe = renamed(misdirect)


def node_if_any(port: Port, node_id: int | None) -> Node | None:
    """Return the handle of a node, or None for no node."""
    return None if node_id is None else Node(port, node_id)
