"""A cluster in virtual time, without sockets: the same handle, and the same trace bytes for the same seed.

Its members are puppets. Time advances only in waits and in `Cluster.pass_time`, from deadline to deadline, so a
rebalance of five minutes takes a millisecond. This is determinism level D4 (docs/determinism.md).
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

from koordinator.emulator.broker.listeners import host_port
from koordinator.emulator.config.options import Options
from koordinator.emulator.control.control import Control
from koordinator.emulator.control.results import is_satisfied
from koordinator.emulator.core.brokers import PLAINTEXT, Endpoint
from koordinator.emulator.server.build import build_cluster

from .cluster import Cluster
from .durations import Duration, ms_of
from .handle import checked
from .port import ClusterStopped, Port, call_text
from .renames import renamed_arguments, warn_renamed
from .words import ClockMode, ErrorCodes, Profile  # noqa: TC001 - arguments are checked with them

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

BEGIN_MS = 1_700_000_000_000
"""The start of virtual time, in milliseconds since the epoch: 14 November 2023."""

HOST, FIRST_PORT = "simulated", 9092
"""The advertised address; nothing listens there."""


class Simulation:
    """A cluster in virtual time, as a context manager that returns its `Cluster`.

        with Simulation(topics={"orders": 6}, seed=7) as cluster:
            cluster.group("svc").create_puppet("a", topics=["orders"]).join()
            cluster.group("svc").wait_stable(members=1)

    The arguments are those of `Emulator` that need no sockets, with the same exceptions; `seed` defaults to 0. Each
    start of a Simulation creates a new cluster.
    """

    @checked
    @renamed_arguments(about="trace_header")
    def __init__(  # noqa: PLR0913 - one option each, by name
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        profile: Profile | None = None,
        kafka_version: str | None = None,
        error_codes: ErrorCodes | None = None,
        clock: ClockMode | None = None,
        seed: int = 0,
        trace: str | Path | None = None,
        brokers: int = 1,
        broker_ids: Sequence[int] = (),
        racks: Sequence[str] = (),
        trace_header: Mapping[str, object] | None = None,
    ) -> None:
        self._options = Options(
            host=HOST,
            brokers=brokers,
            broker_ids=broker_ids,
            racks=racks,
            topics=dict(topics or {}),
            config=dict(config or {}),
            profile=profile,
            kafka_version=kafka_version,
            error_codes=error_codes,
            clock=clock,
            trace=trace,
            seed=seed,
            trace_header=dict(trace_header or {}),
        )
        self._ports: list[VirtualTimePort] = []

    def start(self) -> Cluster:
        """Create a cluster, which exists until its `stop`."""
        port = VirtualTimePort(self._options)
        self._ports.append(port)
        return Cluster(port)

    def pass_time(self, seconds: Duration) -> None:
        """Call `Cluster.pass_time` of the cluster that was started last: the method of the release before."""
        warn_renamed("Simulation.pass_time", "Cluster.pass_time")
        self._ports[-1].pass_time(ms_of(seconds))

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self._ports.pop().stop()


class VirtualTimePort(Port):
    """A port to a cluster whose time advances only in waits; also the `control.nodes.Host` of its nodes."""

    blocks_in_wait = False

    def __init__(self, options: Options) -> None:
        self.now = BEGIN_MS
        self.built = build_cluster(options, lambda: self.now * 1000)
        for node_id, broker in self.built.cluster.brokers.items():
            broker.endpoints[PLAINTEXT] = endpoint_of(node_id)
        self.seed = self.built.seed
        # without clients, all outputs are discarded
        self.control = Control(self.built.runtime, self, lambda _: None, self.seed)
        self.built.begin()
        self._lock = RLock()
        self._has_stopped = False

    @property
    def bootstrap_servers(self) -> str:
        """The advertised addresses; nothing listens there."""
        brokers = self.built.cluster.brokers.values()
        return ",".join(
            host_port(broker.endpoints[PLAINTEXT].host, broker.endpoints[PLAINTEXT].port) for broker in brokers
        )

    def perform(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - the operation's own type
        """Perform an operation, and everything that is due after it."""
        with self._lock:
            self._check(operation, arguments)
            if self.control.is_async(operation):
                result = self._run(operation, arguments)
            else:
                result = self.control.call(self.now, operation, arguments)
            self.built.runtime.tick(self.now)
            return result

    def poll(self, operation: str, arguments: dict[str, Any], limit_s: float) -> Any:  # noqa: ANN401 - likewise
        """Perform an operation; advance time from deadline to deadline until its result is satisfied."""
        with self._lock:
            self._check(operation, arguments)
            limit = self.now + round(limit_s * 1000)
            while not is_satisfied(result := self.control.call(self.now, operation, arguments)):
                if not self._tick_next(limit):
                    return self.control.call(self.now, operation, arguments)
            return result

    def clock_ms(self) -> int:
        """Return the virtual time."""
        return self.now

    def pass_time(self, ms: int) -> None:
        """Advance time by `ms` milliseconds."""
        with self._lock:
            self._check_running(f"pass_time({ms} ms)")
            limit = self.now + ms
            while self._tick_next(limit):
                pass

    def trace_lines(self) -> list[dict[str, object]]:
        """Return the header and the events of the trace."""
        with self._lock:
            trace = self.built.runtime.trace
            return [trace.header, *trace.events()]

    def stop(self) -> None:
        """Stop the cluster; a second call does nothing. A bug that ended a request is raised once."""
        with self._lock:
            if not self._has_stopped:
                self._has_stopped = True
                self.built.close()
                self.built.runtime.failures.check()

    def _tick_next(self, limit: int) -> bool:
        """Advance to the next deadline and return True; without one up to `limit`, advance to `limit`."""
        deadline = self.built.runtime.deadline()
        if deadline is None or deadline > limit:
            self.now = limit
            return False
        self.now = max(self.now, deadline)
        self.built.runtime.tick(self.now)
        return True

    async def stop_node(self, node_id: int) -> None:
        """Shut a node down in order."""
        self.built.runtime.stop_node(self.now, node_id)

    async def kill_node(self, node_id: int) -> None:
        """Kill a node."""
        self.built.runtime.kill_node(self.now, node_id)

    async def start_node(self, node_id: int) -> None:
        """Start a node that is down."""
        self.built.runtime.start_node(self.now, node_id)

    async def add_node(self, rack: str | None) -> int:
        """Add a node to the cluster and return its id."""
        runtime = self.built.runtime
        node_id = runtime.next_node_id
        runtime.add_node(self.now, {PLAINTEXT: endpoint_of(node_id)}, rack)
        return node_id

    async def remove_node(self, node_id: int) -> None:
        """Remove a node from the cluster."""
        self.built.runtime.remove_node(self.now, node_id)

    def rotate_certificate(self, to: str) -> None:
        """Refuse: nothing is encrypted in virtual time."""
        raise ValueError(f"rotate_certificate({to!r}): a simulation has no listener with TLS")

    def _check(self, operation: str, arguments: dict[str, Any]) -> None:
        self._check_running(call_text(operation, arguments))

    def _check_running(self, text: str) -> None:
        if self._has_stopped:
            raise ClusterStopped(f"{text}: the simulated cluster has stopped")

    def _run(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - likewise
        """Run an async operation, which never awaits anything without sockets."""
        coroutine = self.control.run(operation, arguments)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError(f"{operation} awaits something without a loop")


def endpoint_of(node_id: int) -> Endpoint:
    """Return the advertised endpoint of a node."""
    return Endpoint(HOST, FIRST_PORT + node_id - 1)
