"""Nodes with their sockets: what happens to a node of the broker ring happens to its listeners as well.

A node that is down keeps its ports, so that nobody else gets them until it is started again; who connects there is
refused.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import trio

from ..broker.listeners import host_port
from ..core.cluster import PLAINTEXT, Endpoint
from .listening_sockets import ListeningSocket, address_of, keep_port, listen, listen_again, port_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.listeners import Listeners
    from .server import Server


class NodeListeners:
    """Runs the brokers behind their listeners. Operations raise ValueError for what cannot be, with nothing done."""

    def __init__(self, runtime: ClusterRuntime, server: Server, listeners: Listeners) -> None:
        self._runtime = runtime
        self._server = server
        self._listeners = listeners
        # the entrances of each node that is up, and what keeps the ports of each that is down
        self._entrances: dict[int, list[ListeningSocket]] = {}
        self._kept: dict[int, dict[str, list[socket.socket]]] = {}
        self._one_at_a_time = trio.Lock()

    def bootstrap_servers(self, listener: str = PLAINTEXT) -> str:
        """`host:port` of every node, as clients of a listener are told; ValueError if there is none of the name."""
        brokers = self._runtime.cluster.brokers.values()
        endpoints = [broker.endpoints[listener] for broker in brokers if listener in broker.endpoints]
        if not endpoints:
            raise ValueError(f"there is no listener {listener!r}")
        return ",".join(host_port(endpoint.host, endpoint.port) for endpoint in endpoints)

    @property
    def listeners(self) -> list[str]:
        """The names of the listeners there are."""
        brokers = self._runtime.cluster.brokers.values()
        return list(dict.fromkeys(name for broker in brokers for name in broker.endpoints))

    def advertised_elsewhere(self) -> list[str]:
        """A line for each listener whose clients are told something else than where it listens."""
        lines = []
        for node_id, entrances in self._entrances.items():
            for entrance in entrances:
                endpoint = self._runtime.cluster.brokers[node_id].endpoints[entrance.listener]
                told, at = host_port(endpoint.host, endpoint.port), address_of(entrance.sockets)
                if told != at:
                    node = "" if len(self._entrances) == 1 else f"{node_id}:"
                    lines.append(f"{node}{entrance.listener} listens on {at}, and tells clients to come to {told}")
        return lines

    async def serve(self, begin: Callable[[], None], *, task_status: trio.TaskStatus[None]) -> None:
        """Listen everywhere, `begin`, and serve until cancelled. Raises OSError if nothing can listen somewhere."""
        async with AsyncExitStack() as opened:
            for node_id in self._runtime.states:
                self._entrances[node_id], endpoints = await self._listen(node_id, opened)
                self._runtime.cluster.brokers[node_id].endpoints.update(endpoints)
            opened.pop_all()
        begin()
        try:
            entrances = [entrance for each in self._entrances.values() for entrance in each]
            await self._server.serve(entrances, task_status=task_status)
        finally:
            for node_id in list(self._kept):
                self._let_go(node_id)

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down in order (`ClusterRuntime.stop_node`)."""
        async with self._one_at_a_time:
            self._server.perform(self._runtime.stop_node(self._server.now(), node_id))
            await self._shut(node_id)

    async def kill_node(self, node_id: int) -> None:
        """End a node at once (`ClusterRuntime.kill_node`)."""
        async with self._one_at_a_time:
            self._server.perform(self._runtime.kill_node(self._server.now(), node_id))
            await self._shut(node_id)

    async def start_node(self, node_id: int) -> None:
        """Let a node that is down come up, at its old ports."""
        async with self._one_at_a_time:
            self._server.perform(self._runtime.start_node(self._server.now(), node_id))
            self._entrances[node_id] = [
                ListeningSocket(node_id, listener, [listen_again(each) for each in kept])
                for listener, kept in self._kept.pop(node_id).items()
            ]
            await self._let_in(node_id)

    async def add_node(self) -> int:
        """Take a new node into the cluster, and start it; returns its id. Raises OSError if it cannot listen."""
        async with self._one_at_a_time:
            node_id = self._runtime.next_node_id
            async with AsyncExitStack() as opened:
                self._entrances[node_id], endpoints = await self._listen(node_id, opened)
                opened.pop_all()
            self._server.perform(self._runtime.add_node(self._server.now(), endpoints))
            await self._let_in(node_id)
            return node_id

    async def remove_node(self, node_id: int) -> None:
        """Take a node out of the cluster for good; its ports are free."""
        async with self._one_at_a_time:
            self._server.perform(self._runtime.remove_node(self._server.now(), node_id))
            if node_id in self._entrances:
                await self._shut(node_id)
            self._let_go(node_id)

    async def _listen(self, node_id: int, opened: AsyncExitStack) -> tuple[list[ListeningSocket], dict[str, Endpoint]]:
        """Open the sockets of a node, which `opened` closes; returns them, and what clients are told."""
        entrances, endpoints = [], {}
        for wanted in self._listeners.of(node_id):
            sockets = await listen(wanted.host, wanted.port)
            for each in sockets:
                opened.push_async_callback(each.aclose)
            entrances.append(ListeningSocket(node_id, wanted.name, sockets))
            port = wanted.advertised_port or port_of(sockets)
            endpoints[wanted.name] = Endpoint(wanted.advertised_host, port)
        return entrances, endpoints

    async def _let_in(self, node_id: int) -> None:
        for entrance in self._entrances[node_id]:
            await self._server.open(entrance)

    async def _shut(self, node_id: int) -> None:
        """Close the entrances of a node, and keep its ports."""
        entrances = self._entrances.pop(node_id)
        keepers = {entrance.listener: [keep_port(each) for each in entrance.sockets] for entrance in entrances}
        await self._server.close(node_id)
        self._kept[node_id] = {listener: [keep() for keep in each] for listener, each in keepers.items()}

    def _let_go(self, node_id: int) -> None:
        for kept in self._kept.pop(node_id).values():
            for each in kept:
                each.close()
