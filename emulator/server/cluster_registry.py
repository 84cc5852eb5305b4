"""The clusters of a process, each with its own ports, rules and trace."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import trio

from koordinator.wire.values import value

from ..config.suggest import did_you_mean
from .build import build
from .cluster_info import ClusterInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..config.options import Options
    from .build import ServedCluster

FIRST = "default"
"""The id of the first cluster."""


class NoSuchCluster(LookupError):
    """The cluster id is unknown; the message lists the known ones."""


class PortsTaken(RuntimeError):
    """The port range has too few consecutive free ports."""


@value
class RegisteredCluster:
    """A served cluster; cancelling `scope` ends it, which sets `ended`."""

    id: str
    cluster: ServedCluster
    ports: tuple[int, ...]
    scope: trio.CancelScope
    ended: trio.Event

    def info(self) -> ClusterInfo:
        """Return the cluster's addresses, and the values that reproduce it."""
        served, listeners = self.cluster, self.cluster.node_listeners
        return ClusterInfo(
            id=self.id,
            bootstrap_servers=served.bootstrap_servers,
            listeners={name: listeners.bootstrap_servers(name) for name in listeners.listeners},
            cluster_id=served.cluster.cluster_id,
            seed=served.seed,
        )


class ClusterRegistry:
    """The clusters of a process by id. New clusters get their ports from `ports`, or any free ports without it."""

    def __init__(self, nursery: trio.Nursery, log: Callable[[str], None], ports: range | None = None) -> None:
        self._nursery = nursery
        self.log = log
        self._ports = ports
        self._clusters: dict[str, RegisteredCluster] = {}
        self._numbers = count(1)
        self._creating = trio.Lock()
        self.on_added: list[Callable[[RegisteredCluster], None]] = []
        """Callbacks for every new cluster."""

    def __iter__(self) -> Iterator[RegisteredCluster]:
        """Iterate over the clusters, oldest first."""
        return iter(list(self._clusters.values()))

    def __getitem__(self, cluster_id: str) -> RegisteredCluster:
        """Return a cluster; NoSuchCluster if the id is unknown."""
        registered = self._clusters.get(cluster_id)
        if registered is None:
            known = f"there are {', '.join(self._clusters) or 'none'}{did_you_mean(cluster_id, self._clusters)}"
            raise NoSuchCluster(f"there is no cluster {cluster_id!r}; {known}")
        return registered

    async def create(self, options: Options, cluster_id: str | None = None) -> RegisteredCluster:
        """Build a cluster and serve it, at ports of the range unless the options have a port.

        Raises ValueError for a taken id or invalid options, PortsTaken, and OSError if a listener fails.
        """
        # one at a time: the id and the ports are taken when the cluster is there
        async with self._creating:
            if options.port == 0 and self._ports is not None:
                options = replace(options, port=self._free_port(self._ports, len(options.node_ids)))
            if cluster_id in self._clusters:
                raise ValueError(f"there is a cluster {cluster_id!r} already")
            # thousands of topics take longer than other clients should wait
            cluster = await trio.to_thread.run_sync(build, options, self.log)
            return await self.add(cluster, cluster_id or self._free_id())

    async def add(self, cluster: ServedCluster, cluster_id: str) -> RegisteredCluster:
        """Serve a cluster, and close it at its end. Raises OSError if a listener fails."""
        scope, ended = trio.CancelScope(), trio.Event()

        async def serve(task_status: trio.TaskStatus[None]) -> None:
            try:
                with scope:
                    await cluster.serve(task_status=task_status)
            finally:
                cluster.close()
                ended.set()

        options = cluster.options
        ports = tuple(range(options.port, options.port + len(options.node_ids))) if options.port else ()
        registered = self._clusters[cluster_id] = RegisteredCluster(cluster_id, cluster, ports, scope, ended)
        try:
            await self._nursery.start(serve)
        except BaseException:
            del self._clusters[cluster_id]
            raise
        for callback in self.on_added:
            callback(registered)
        return registered

    async def remove(self, cluster_id: str) -> None:
        """End a cluster and free its ports."""
        registered = self[cluster_id]
        registered.scope.cancel()
        await registered.ended.wait()
        del self._clusters[cluster_id]

    def _free_id(self) -> str:
        return next(name for number in self._numbers if (name := f"cluster-{number}") not in self._clusters)

    def _free_port(self, ports: range, needed: int) -> int:
        taken = {port for registered in self._clusters.values() for port in registered.ports}
        for first in range(ports.start, ports.stop - needed + 1):
            if taken.isdisjoint(range(first, first + needed)):
                return first
        raise PortsTaken(
            f"{ports.start}-{ports.stop - 1} has no {needed} consecutive free ports; delete a cluster, or extend"
            " --port-range"
        )
