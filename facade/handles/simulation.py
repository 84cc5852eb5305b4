"""A cluster on virtual time, without a socket: the same handle, and the same trace, byte for byte, for the same seed.

Members are puppets. Nothing happens while nobody asks; a wait takes no time at all, because time goes on to whatever is
due next. This is determinism level D4 (docs/determinism.md); a five-minute rebalance is a millisecond.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

from koordinator.emulator.broker.listeners import host_port
from koordinator.emulator.config.options import Options
from koordinator.emulator.control.control import Control, is_met
from koordinator.emulator.core.cluster import PLAINTEXT, Endpoint
from koordinator.emulator.server.build import build_cluster

from .cluster import Cluster
from .port import ClusterStopped, call_text
from .seeding import topics_checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from koordinator.emulator.broker.connections import Output

BEGIN_MS = 1_700_000_000_000
"""When virtual time begins, in milliseconds since the epoch: 14 November 2023."""

HOST, FIRST_PORT = "simulated", 9092
"""What would be told to clients, if there could be any."""


class Simulation:
    """A cluster on virtual time, as a context manager that gives its `Cluster`.

        with Simulation(topics={"orders": 6}, seed=7) as cluster:
            cluster.group("svc").puppet("a", topics=["orders"]).join()
            cluster.group("svc").wait_stable(members=1)

    The arguments are those of `Emulator`, as far as they make sense without sockets, and raise the same. `seed` is 0 if
    nothing is said. One Simulation can be entered again and again; each time gives a new cluster.
    """

    def __init__(  # noqa: PLR0913 - each is a wish of its own, and all but the first two go by name
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        profile: str | None = None,
        kafka_version: str | None = None,
        error_codes: str | None = None,
        clock: str | None = None,
        seed: int = 0,
        trace: str | Path | None = None,
        brokers: int = 1,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self._options = Options(
            host=HOST,
            brokers=brokers,
            topics=topics_checked(topics),
            config=dict(config or {}),
            profile=profile,
            kafka_version=kafka_version,
            error_codes=error_codes,
            clock=clock,
            trace=trace,
            seed=seed,
            about=dict(about or {}),
        )
        self._running: list[VirtualTimePort] = []

    def start(self) -> Cluster:
        """Make a cluster, which is there until its `stop`."""
        port = VirtualTimePort(self._options)
        self._running.append(port)
        return Cluster(port)

    def pass_time(self, seconds: float) -> None:
        """Let time go on in the cluster that was started last, for all groups: what is due meanwhile happens."""
        self._running[-1].pass_time(round(seconds * 1000))

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.pop().stop()


class VirtualTimePort:
    """A `Port` to a cluster whose time goes on when somebody waits, and not otherwise."""

    def __init__(self, options: Options) -> None:
        self.now = BEGIN_MS
        self.world = build_cluster(options, lambda: self.now * 1000)
        for node_id, broker in self.world.cluster.brokers.items():
            broker.endpoints[PLAINTEXT] = endpoint_of(node_id)
        self.control = Control(self.world.runtime, Unhosted(self), self.leave, self.world.seed)
        self.world.begin()
        self._one_at_a_time = RLock()
        self._has_stopped = False

    @property
    def bootstrap_servers(self) -> str:
        """What clients would connect to."""
        brokers = self.world.cluster.brokers.values()
        return ",".join(
            host_port(broker.endpoints[PLAINTEXT].host, broker.endpoints[PLAINTEXT].port) for broker in brokers
        )

    @property
    def seed(self) -> int:
        """What decides the ids of the cluster."""
        return self.world.seed

    def leave(self, outputs: Iterable[Output]) -> None:
        """Nobody is there whom anything could reach."""

    def call(self, operation: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - plain data
        """Do something, and let everything happen that is due by it."""
        with self._one_at_a_time:
            self._check(operation, arguments)
            if self.control.takes_its_time(operation):
                done = self._at_once(operation, arguments)
            else:
                done = self.control.call(self.now, operation, arguments)
            self._tick()
            return done

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> Any:  # noqa: ANN401 - likewise
        """Let time go on to whatever is due next, until what an operation gives is true; returns what it gave last."""
        with self._one_at_a_time:
            self._check(operation, arguments)
            limit = self.now + round(timeout_s * 1000)
            while not is_met(last := self.control.call(self.now, operation, arguments)):
                deadline = self.world.runtime.deadline()
                if deadline is None or deadline > limit:
                    self.now = limit
                    return self.control.call(self.now, operation, arguments)
                self.now = max(self.now, deadline)
                self._tick()
            return last

    def pass_time(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        if ms < 0:
            raise ValueError(f"time does not go back: {ms} ms")
        with self._one_at_a_time:
            limit = self.now + ms
            while (deadline := self.world.runtime.deadline()) is not None and deadline <= limit:
                self.now = max(self.now, deadline)
                self._tick()
            self.now = limit

    def trace_lines(self) -> list[dict[str, object]]:
        """The header and the events of the trace."""
        with self._one_at_a_time:
            trace = self.world.runtime.trace
            return [trace.header, *trace.events()]

    def stop(self) -> None:
        """End it; nothing happens if it has ended."""
        with self._one_at_a_time:
            if not self._has_stopped:
                self._has_stopped = True
                self.world.close()

    def _tick(self) -> None:
        self.leave(self.world.runtime.tick(self.now))

    def _check(self, operation: str, arguments: dict[str, Any]) -> None:
        if self._has_stopped:
            raise ClusterStopped(f"{call_text(operation, arguments)}: the simulated cluster has stopped")

    def _at_once(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - likewise
        awaited = self.control.run(operation, arguments)
        try:
            awaited.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError(f"{operation} waits for something, and there is nothing to wait for")


class Unhosted:
    """Nodes without sockets: a `controls.nodes.Host`."""

    def __init__(self, port: VirtualTimePort) -> None:
        self._port = port

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down in order."""
        self._port.leave(self._port.world.runtime.stop_node(self._port.now, node_id))

    async def kill_node(self, node_id: int) -> None:
        """End a node at once."""
        self._port.leave(self._port.world.runtime.kill_node(self._port.now, node_id))

    async def start_node(self, node_id: int) -> None:
        """Let a node that is down come up."""
        self._port.leave(self._port.world.runtime.start_node(self._port.now, node_id))

    async def add_node(self) -> int:
        """Take a new node into the cluster; returns its id."""
        brokers = self._port.world.runtime
        node_id = brokers.next_node_id
        self._port.leave(brokers.add_node(self._port.now, {PLAINTEXT: endpoint_of(node_id)}))
        return node_id

    async def remove_node(self, node_id: int) -> None:
        """Take a node out of the cluster for good."""
        self._port.leave(self._port.world.runtime.remove_node(self._port.now, node_id))


def endpoint_of(node_id: int) -> Endpoint:
    """What would be told of a node."""
    return Endpoint(HOST, FIRST_PORT + node_id - 1)
