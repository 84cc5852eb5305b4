"""The handles of a cluster's nodes: what may happen to a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from koordinator.emulator.core.cluster import PLAINTEXT

if TYPE_CHECKING:
    from .port import Port


class Node:
    """One broker of a cluster.

    Every method may be called from any thread, and raises ValueError, with nothing done, where it makes no sense: a
    node that is down cannot be stopped. They raise ClusterStopped once the cluster has stopped.
    """

    def __init__(self, port: Port, node_id: int) -> None:
        self._port = port
        self.id = node_id

    def __repr__(self) -> str:
        return f"<Node {self.id}>"

    @property
    def state(self) -> str:
        """up, paused, down, or removed."""
        nodes = self._port.call("nodes.states")
        return next((node["state"] for node in nodes if node["node"] == self.id), "removed")

    def address(self, listener: str = PLAINTEXT) -> str:
        """`host:port`, as clients that came in by a listener are told; ValueError if there is none of the name."""
        return cast("str", self._port.call("nodes.address", node=self.id, listener=listener))

    def stop(self) -> None:
        """Shut it down in order: others lead what it led, who waits for an answer is told so, its port is closed.

        What it led and has no other replica is led by nobody until it is started again.
        """
        self._port.call("nodes.stop", node=self.id)

    def kill(self) -> None:
        """End it at once, without a word to anybody who waits for an answer."""
        self._port.call("nodes.kill", node=self.id)

    def start(self) -> None:
        """Start it again, at its old port. It reads the groups it coordinates from `__consumer_offsets`."""
        self._port.call("nodes.start", node=self.id)

    def remove(self) -> None:
        """Take it out of the cluster for good; it is stopped, if it is not down.

        Nothing is moved before, as in Kafka: what has no other replica is led by nobody until a test moves it.
        """
        self._port.call("nodes.remove", node=self.id)

    def pause(self) -> None:
        """Let it accept and read what comes, and do nothing, while time goes on. It leads what it led."""
        self._port.call("nodes.pause", node=self.id)

    def resume(self) -> None:
        """Let it go on: what was due in the meantime happens, then what has come in."""
        self._port.call("nodes.resume", node=self.id)

    def advertise(self, host: str, port: int, listener: str = PLAINTEXT) -> None:
        """Tell clients that came in by a listener another address of this node, from now on."""
        self._port.call("nodes.advertise", node=self.id, host=host, port=port, listener=listener)

    def believe(self, group: str, coordinator: int | None) -> None:
        """Name another node as a group's coordinator to who asks here, while it is up; None: the right one again."""
        self._port.call("nodes.believe", node=self.id, group=group, coordinator=coordinator)
