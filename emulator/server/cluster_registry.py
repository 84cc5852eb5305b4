"""Several clusters in one process, each with ports, rules and a trace of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from .build import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..config.options import Options
    from .build import ServedCluster

T = TypeVar("T")

FIRST = "default"
"""The id of the cluster that is there from the start."""


class NoSuchCluster(LookupError):
    """There is no cluster with this id; the text names those there are."""


class PortsTaken(RuntimeError):
    """As many free ports in a row as are wanted are not left in the range."""


@dataclass(frozen=True, slots=True)
class RegisteredCluster:
    """A cluster that is served, and what ends it."""

    id: str
    cluster: ServedCluster
    ports: tuple[int, ...]
    ends: trio.CancelScope
    has_ended: trio.Event

    async def call(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - plain data
        """Do an operation. Raises what it raises."""
        control, server = self.cluster.control, self.cluster.server
        if control.takes_its_time(operation):
            return await control.run(operation, arguments)
        return server.act(lambda now: control.call(now, operation, arguments))

    async def wait(
        self, operation: str, arguments: dict[str, Any], timeout_s: float, is_met: Callable[[Any], bool]
    ) -> Any:  # noqa: ANN401 - likewise
        """Do an operation after everything that happens, until what it gives is met; returns what it gave last."""
        control, server = self.cluster.control, self.cluster.server
        last: list[Any] = [None]

        def look() -> bool:
            last[0] = control.call(server.now(), operation, arguments)
            return is_met(last[0])

        await server.wait_for(look, timeout_s)
        return last[0]

    def described(self) -> dict[str, Any]:
        """What somebody who would use it has to know."""
        parts = self.cluster
        return {
            "id": self.id,
            "bootstrap_servers": parts.bootstrap_servers,
            "listeners": {
                name: parts.node_listeners.bootstrap_servers(name) for name in parts.node_listeners.listeners
            },
            "cluster_id": parts.cluster.cluster_id,
            "seed": parts.seed,
        }


class ClusterRegistry:
    """The clusters of a process, by id. `ports`: those that new ones may have; any free ones, if there are none."""

    def __init__(self, nursery: trio.Nursery, log: Callable[[str], None], ports: range | None = None) -> None:
        self._nursery = nursery
        self._log = log
        self._ports = ports
        self._clusters: dict[str, RegisteredCluster] = {}
        self._numbers = count(1)
        self.on_added: list[Callable[[RegisteredCluster], None]] = []
        """Who is told of every cluster that is served from now on."""

    def __iter__(self) -> Iterator[RegisteredCluster]:
        """The clusters there are, the oldest first."""
        return iter(list(self._clusters.values()))

    def __getitem__(self, cluster_id: str) -> RegisteredCluster:
        """A cluster; NoSuchCluster if there is none of the id."""
        registered = self._clusters.get(cluster_id)
        if registered is None:
            raise NoSuchCluster(f"there is no cluster {cluster_id!r}; there are {', '.join(self._clusters) or 'none'}")
        return registered

    async def create(self, options: Options, cluster_id: str | None = None) -> RegisteredCluster:
        """Make one more cluster and serve it; its port is one of the range, unless the options say one.

        Raises ValueError for what cannot be (an id that is taken, a setting), PortsTaken, and OSError.
        """
        if options.port == 0 and self._ports is not None:
            options = replace(options, port=self._free_port(self._ports, options.brokers))
        if cluster_id in self._clusters:
            raise ValueError(f"there is a cluster {cluster_id!r} already")
        parts = build(options, self._log)
        return await self.add(parts, cluster_id or self._free_id())

    async def add(self, parts: ServedCluster, cluster_id: str) -> RegisteredCluster:
        """Serve a cluster, and close it when it has ended. Raises OSError if nothing can listen there."""
        ends, has_ended = trio.CancelScope(), trio.Event()

        async def serve(task_status: trio.TaskStatus[None]) -> None:
            try:
                with ends:
                    await parts.serve(task_status=task_status)
            finally:
                parts.close()
                has_ended.set()

        options = parts.options
        ports = tuple(range(options.port, options.port + options.brokers)) if options.port else ()
        registered = self._clusters[cluster_id] = RegisteredCluster(cluster_id, parts, ports, ends, has_ended)
        try:
            await self._nursery.start(serve)
        except BaseException:
            del self._clusters[cluster_id]
            raise
        for tell in self.on_added:
            tell(registered)
        return registered

    async def remove(self, cluster_id: str) -> None:
        """End a cluster; its ports are free when this returns."""
        registered = self[cluster_id]
        registered.ends.cancel()
        await registered.has_ended.wait()
        del self._clusters[cluster_id]

    def _free_id(self) -> str:
        return next(each for number in self._numbers if (each := f"cluster-{number}") not in self._clusters)

    def _free_port(self, ports: range, wanted: int) -> int:
        taken = {port for registered in self._clusters.values() for port in registered.ports}
        for first in range(ports.start, ports.stop - wanted + 1):
            if taken.isdisjoint(range(first, first + wanted)):
                return first
        raise PortsTaken(
            f"{wanted} free ports in a row are not left in {ports.start}-{ports.stop - 1}; delete a cluster, or give"
            " more with --port-range"
        )
