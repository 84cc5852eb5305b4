"""Nodes together with their listening sockets: an operation on a node also opens or closes its listeners.

The ports of a node that is down stay reserved until it restarts; they refuse connections.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from ..broker.listeners import host_port
from ..core.brokers import Endpoint
from .listening_sockets import ListeningSocket, address_of, listen, listen_again, port_of, reserve_port

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.listeners import Listeners
    from .certificates import Certificates
    from .server import Server
    from .tls import TlsListener


@dataclass(frozen=True)
class Security:
    """The security protocols of listeners by name, the passwords of users, and certificates if a listener has TLS."""

    protocols: Mapping[str, str]
    users: Mapping[str, str] = field(repr=False)
    certificates: Certificates | None
    tls: Mapping[str, TlsListener]


class NodeListeners:
    """Serves the nodes at their listeners. Operations raise ValueError, with nothing changed, if not possible."""

    def __init__(
        self,
        runtime: ClusterRuntime,
        server: Server,
        listeners: Listeners,
        security: Security,
    ) -> None:
        self._runtime = runtime
        self._server = server
        self._listeners = listeners
        self.security = security
        """The addresses and protocols of the listeners, for clients."""
        # listening sockets of the nodes that are up, and reserved ports of those that are down
        self._listening: dict[int, list[ListeningSocket]] = {}
        self._reserved: dict[int, dict[str, list[socket.socket]]] = {}
        self._operation = trio.Lock()

    def bootstrap_servers(self, listener: str | None = None) -> str:
        """Return the advertised `host:port` of every node for a listener; by default the main one.

        Raises ValueError if no node has the listener.
        """
        listener = self._listeners.main if listener is None else listener
        brokers = self._runtime.cluster.brokers.values()
        endpoints = [broker.endpoints[listener] for broker in brokers if listener in broker.endpoints]
        if not endpoints:
            raise ValueError(f"there is no listener {listener!r}")
        return ",".join(host_port(endpoint.host, endpoint.port) for endpoint in endpoints)

    @property
    def main(self) -> str:
        """The name of the main listener."""
        return self._listeners.main

    @property
    def listeners(self) -> list[str]:
        """The names of all listeners."""
        brokers = self._runtime.cluster.brokers.values()
        return list(dict.fromkeys(name for broker in brokers for name in broker.endpoints))

    def advertised_elsewhere(self) -> list[str]:
        """Return a line for each listener whose advertised address differs from its own."""
        lines = []
        for node_id, listening in self._listening.items():
            for listening_socket in listening:
                name = listening_socket.listener
                endpoint = self._runtime.cluster.brokers[node_id].endpoints[name]
                advertised, bound = host_port(endpoint.host, endpoint.port), address_of(listening_socket.sockets)
                if advertised != bound:
                    node = "" if len(self._listening) == 1 else f"{node_id}:"
                    lines.append(f"{node}{name} listens on {bound}, and advertises {advertised}")
        return lines

    async def serve(self, begin: Callable[[], None], *, task_status: trio.TaskStatus[None]) -> None:
        """Listen at all listeners, call `begin`, and serve until cancelled. Raises OSError if a listener fails."""
        async with AsyncExitStack() as opened:
            for node_id in self._runtime.states:
                self._listening[node_id], endpoints = await self._listen(node_id, opened)
                self._runtime.cluster.brokers[node_id].endpoints.update(endpoints)
            opened.pop_all()
        begin()
        try:
            listening = [listening_socket for of_node in self._listening.values() for listening_socket in of_node]
            await self._server.serve(listening, task_status=task_status)
        finally:
            for node_id in list(self._reserved):
                self._release_ports(node_id)

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down (`ClusterRuntime.stop_node`)."""
        async with self._operation:
            self._server.perform(self._runtime.stop_node(self._server.now(), node_id))
            await self._close(node_id)

    async def kill_node(self, node_id: int) -> None:
        """End a node at once (`ClusterRuntime.kill_node`)."""
        async with self._operation:
            self._server.perform(self._runtime.kill_node(self._server.now(), node_id))
            await self._close(node_id)

    async def start_node(self, node_id: int) -> None:
        """Start a node that is down, at its previous ports."""
        async with self._operation:
            self._server.perform(self._runtime.start_node(self._server.now(), node_id))
            self._listening[node_id] = [
                ListeningSocket(
                    node_id, listener, [listen_again(each) for each in reserved], self.security.tls.get(listener)
                )
                for listener, reserved in self._reserved.pop(node_id).items()
            ]
            self._accept(node_id)

    async def add_node(self, rack: str | None) -> int:
        """Add a node to the cluster and start it; return its id. Raises OSError if a listener fails."""
        async with self._operation:
            node_id = self._runtime.next_node_id
            async with AsyncExitStack() as opened:
                self._listening[node_id], endpoints = await self._listen(node_id, opened)
                opened.pop_all()
            self._server.perform(self._runtime.add_node(self._server.now(), endpoints, rack))
            self._accept(node_id)
            return node_id

    async def remove_node(self, node_id: int) -> None:
        """Remove a node from the cluster, and free its ports."""
        async with self._operation:
            self._server.perform(self._runtime.remove_node(self._server.now(), node_id))
            if node_id in self._listening:
                await self._close(node_id)
            self._release_ports(node_id)

    def rotate_certificate(self, to: str) -> None:
        """Give the listeners with TLS another certificate, for new connections. Raises ValueError without one."""
        certificates = self.security.certificates
        if certificates is None:
            raise ValueError("no listener has TLS: start the cluster with security=ssl or sasl_ssl")
        context = certificates.rotated(to, self._runtime.cluster.settings.ssl_client_auth)
        for listener in self.security.tls.values():
            listener.context = context

    async def _listen(self, node_id: int, opened: AsyncExitStack) -> tuple[list[ListeningSocket], dict[str, Endpoint]]:
        """Open the sockets of a node, registered with `opened`; return them and the advertised endpoints."""
        listening, endpoints = [], {}
        for listener in self._listeners.of(node_id):
            sockets = await listen(listener.host, listener.port)
            for each in sockets:
                opened.push_async_callback(each.aclose)
            listening.append(ListeningSocket(node_id, listener.name, sockets, self.security.tls.get(listener.name)))
            port = listener.advertised_port or port_of(sockets)
            endpoints[listener.name] = Endpoint(listener.advertised_host, port)
        return listening, endpoints

    def _accept(self, node_id: int) -> None:
        for listening_socket in self._listening[node_id]:
            self._server.open(listening_socket)

    async def _close(self, node_id: int) -> None:
        """Close the listening sockets of a node, and reserve its ports."""
        listening = self._listening.pop(node_id)
        reservations = {one.listener: [reserve_port(each) for each in one.sockets] for one in listening}
        await self._server.close(node_id)
        self._reserved[node_id] = {name: [reserve() for reserve in each] for name, each in reservations.items()}

    def _release_ports(self, node_id: int) -> None:
        for reserved in self._reserved.pop(node_id).values():
            for each in reserved:
                each.close()
