"""Construction of a cluster from its options; the only place that reads the wall clock or draws random numbers."""

from __future__ import annotations

import base64
import logging
import platform
import random
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import trio

from koordinator.version import __version__

from ..broker.authentication.accounts import add_users
from ..broker.authentication.protocols import WITH_SASL, WITH_TLS, protocol_of
from ..broker.cluster_runtime import ClusterRuntime
from ..broker.listeners import Listeners, advertised
from ..broker.unreached_listeners import UnreachedListeners
from ..config.settings import Settings
from ..config.value_rules import InvalidSetting
from ..core.cluster import ClusterState
from ..core.refusal import RefusedError
from ..storage.data_dir import DataDir
from ..storage.recovery import offsets_partitions, restore_topics
from ..trace.file import TraceFile
from ..trace.trace import Trace
from .certificates import Certificates
from .node_listeners import NodeListeners, Security
from .server import Server
from .tls import TlsListener
from .token_keys import token_keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ..broker.connections import Output
    from ..broker.steps import Steps
    from ..config.options import Options
    from ..control.control import Control

SEED_BITS = 32

DEFAULT_USERS = {"alice": "alice-secret"}
"""The users of listeners with SASL if the options have none."""

USERS_UNUSED = "users: no effect, because no listener has SASL: set security to sasl_plaintext or sasl_ssl"

CERTIFICATES_UNUSED = "certificates: no effect, because no listener has TLS: set security to ssl or sasl_ssl"
"""The warning for certificates that the listeners do not use; the control port may, and clusters created over HTTP."""

STEPS_TURN_S = 0.01
"""The time for which an operation takes steps, before clients are served."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class BuiltCluster:
    """A cluster without sockets. `warnings` are for the user, once."""

    options: Options
    settings: Settings
    warnings: tuple[str, ...]
    seed: int
    started_at: int
    cluster: ClusterState
    trace: Trace
    runtime: ClusterRuntime
    trace_file: TraceFile | None
    data_dir: DataDir | None

    def begin(self) -> None:
        """Empty the trace file, if any, before the cluster writes to it."""
        if self.trace_file is not None:
            self.trace_file.begin()

    def close(self) -> None:
        """Close the trace file and the data directory, if any, after serving has ended."""
        if self.trace_file is not None:
            self.trace_file.close()
        if self.data_dir is not None:
            self.data_dir.close()


@dataclass(frozen=True)
class ServedCluster(BuiltCluster):
    """A cluster with its server and listeners."""

    server: Server
    node_listeners: NodeListeners

    @cached_property
    def control(self) -> Control:
        """The operations on the cluster. Only `serve` with a control port, and handles, need to import them."""
        from ..control.control import Control  # noqa: PLC0415

        return Control(self.runtime, self.node_listeners, self.server.perform, self.seed)

    def close(self) -> None:
        """Close everything that the cluster has opened; `serve` has ended, or has never begun."""
        self.server.release()
        super().close()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of each node for clients; the ports are known once `serve` has started."""
        return self.node_listeners.bootstrap_servers()

    async def call(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - the operation's own type
        """Perform an operation by name, between two inputs. Raises what it raises."""
        if self.control.is_async(operation):
            return await self.control.run(operation, arguments)
        if self.control.is_stepwise(operation):
            # operations on different groups need not wait for each other
            async with self._in_order(str(arguments.get("group", ""))):
                return await self._take(lambda now: self.control.begin(now, operation, arguments))
        return self.server.act(lambda now: self.control.begin(now, operation, arguments))

    @asynccontextmanager
    async def _in_order(self, place: str) -> AsyncIterator[None]:
        """Wait for earlier operations at a place; no others wait for this one."""
        lock = self._operations.setdefault(place, trio.Lock())
        async with lock:
            yield
        if not lock.locked():
            self._operations.pop(place, None)

    @cached_property
    def _operations(self) -> dict[str, trio.Lock]:
        return {}

    async def _take(self, begin: Callable[[int], Steps[_T]]) -> _T:
        """Take the steps of an operation in turns with clients."""
        turn_ends = trio.current_time() + STEPS_TURN_S

        def go_on(now: int) -> list[Output]:
            self.control.catch_up(now)
            outputs = steps.send(now)
            while trio.current_time() < turn_ends:
                self.server.perform(outputs)
                outputs = steps.send(now)
            return outputs

        steps = self.server.act(begin)
        try:
            outputs = self.server.act(lambda _: next(steps))
            while True:
                self.server.perform(outputs)
                if trio.current_time() >= turn_ends:
                    await trio.lowlevel.checkpoint()
                    turn_ends = trio.current_time() + STEPS_TURN_S
                outputs = self.server.act(go_on)
        except StopIteration as done:
            result: _T = done.value
            return result

    async def wait(self, operation: str, arguments: dict[str, Any], timeout_s: float) -> Any:  # noqa: ANN401 - likewise
        """Perform an operation after every input until its result is satisfied; return the last result."""
        from ..control.results import is_satisfied  # noqa: PLC0415

        result: Any = None

        def look() -> bool:
            nonlocal result
            result = self.control.call(self.server.now(), operation, arguments)
            return is_satisfied(result)

        await self.server.wait_for(look, timeout_s)
        return result

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Listen and serve until cancelled. Raises OSError, with nothing started, if a listener fails."""
        await self.node_listeners.serve(self.begin, task_status=task_status)


def build(options: Options, log: Callable[[str], None] | None = None) -> ServedCluster:
    """Build a cluster that does not listen yet.

    `log` gets one line for every connection that the broker closes, and for a failing trace file or data directory; the
    default logs warnings of the logger `koordinator`. Raises InvalidSetting, DataDirRefused, ValueError for an invalid
    topic, record or port, and OSError if the trace file cannot be opened.
    """
    listeners = Listeners(
        options.host, options.port, options.listeners, options.advertised, options.node_ids, options.security
    )
    log = log or logging.getLogger("koordinator").warning
    built = build_cluster(options, _clock(), log)
    try:
        security = _security(built, listeners)
    except BaseException:
        built.close()
        raise
    built.runtime.unreached_listeners = UnreachedListeners(built.runtime, log)
    server = Server(built.runtime, built.started_at, log)
    node_listeners = NodeListeners(built.runtime, server, listeners, security)
    parts = {part.name: getattr(built, part.name) for part in fields(built)}
    parts["warnings"] += _without_effect(options, set(security.protocols.values()))
    served = ServedCluster(**parts, server=server, node_listeners=node_listeners)
    if built.settings.group_clock == "auto":
        # such clocks advance without any operation
        _ = served.control
    return served


def _without_effect(options: Options, protocols: set[str]) -> tuple[str, ...]:
    """Return a warning for each option that no listener uses."""
    given = (
        (bool(options.users), WITH_SASL, USERS_UNUSED),
        (bool(options.certificates), WITH_TLS, CERTIFICATES_UNUSED),
    )
    return tuple(warning for is_given, users, warning in given if is_given and users.isdisjoint(protocols))


def _security(built: BuiltCluster, listeners: Listeners) -> Security:
    """Return what clients need to know of the listeners; make users and certificates if a listener has use for them.

    Raises ValueError if there are no certificates, InvalidSetting if there are no keys of tokens, and RefusedError for
    users that cannot be stored; both are ValueErrors.
    """
    options, settings = built.options, built.settings
    protocols = {name: protocol_of(name, settings) for name in listeners.names}
    users, certificates, tls = dict(options.users), None, {}
    if not WITH_SASL.isdisjoint(protocols.values()):
        users = users or DEFAULT_USERS
        add_users(built.cluster, users)
        built.cluster.clients.token_keys = token_keys(settings.sasl_oauthbearer_jwks_endpoint_url)
    if not WITH_TLS.isdisjoint(protocols.values()):
        certificates = Certificates(options.certificates, listeners.hosts)
        context = certificates.context(settings.ssl_client_auth)
        tls = {
            name: TlsListener(context, protocol, certificates.ca_file)
            for name, protocol in protocols.items()
            if protocol in WITH_TLS
        }
    return Security(protocols, users, certificates, tls)


def build_cluster(
    options: Options,
    wall_us: Callable[[], int],
    log: Callable[[str], None] | None = None,
) -> BuiltCluster:
    """Build a cluster without sockets; `wall_us` is its wall clock in microseconds. Raises the errors of `build`."""
    log = log or logging.getLogger("koordinator").warning
    settings, warnings = _settings(options)
    flush_messages = settings.log_flush_interval_messages
    path = options.data_dir
    data_dir = None if path is None else DataDir(Path(path), log, flush_messages=flush_messages)
    try:
        return _build_cluster(options, wall_us, settings, warnings, data_dir, log)
    except BaseException:
        if data_dir is not None:
            data_dir.close()
        raise


def _build_cluster(
    options: Options,
    wall_us: Callable[[], int],
    settings: Settings,
    warnings: list[str],
    data_dir: DataDir | None,
    log: Callable[[str], None],
) -> BuiltCluster:
    trace_file = None if options.trace is None else TraceFile(Path(options.trace), log)
    seed = random.SystemRandom().getrandbits(SEED_BITS) if options.seed is None else options.seed
    new_uuid = _ids(seed, 0 if data_dir is None else data_dir.starts)
    cluster_id = data_dir.cluster_id if data_dir is not None else None
    if cluster_id is None:
        cluster_id = base64.urlsafe_b64encode(new_uuid().bytes).rstrip(b"=").decode()
    partitions = offsets_partitions(data_dir) if data_dir is not None else None
    if partitions is not None and partitions != settings.offsets_topic_num_partitions:
        warnings.append(f"offsets.topic.num.partitions: {partitions}, as in the data directory")
        settings = replace(settings, offsets_topic_num_partitions=partitions)
    cluster = ClusterState(cluster_id, settings, new_uuid)
    started_at = wall_us() // 1000
    # before any topic, so that topics have leaders; ports are registered once they are bound
    racks = options.rack_of
    for node_id in options.node_ids:
        cluster.register(node_id, advertised(options.host), 0, racks.get(node_id))
    if data_dir is not None:
        data_dir.begin(cluster_id)
        restore_topics(cluster, data_dir)

    def header() -> dict[str, object]:
        own = {"cluster": cluster_id, "emulator_version": __version__, "python": platform.python_version()}
        return {**own, "seed": seed, **options.trace_header}

    trace = Trace(wall_us, sink=trace_file, header=header, topic_name=cluster.topics.name_of)
    runtime = ClusterRuntime(started_at, cluster, settings, new_uuid, trace, log)
    warnings += _fill(runtime, options, started_at)
    return BuiltCluster(
        options, settings, tuple(warnings), seed, started_at, cluster, trace, runtime, trace_file, data_dir
    )


def _settings(options: Options) -> tuple[Settings, list[str]]:
    values = dict(options.config)
    shorthands = {
        "error.codes": options.error_codes,
        "group.clock": options.clock,
        "kafka.version": options.kafka_version,
    }
    for name, shorthand in shorthands.items():
        if shorthand is not None:
            configured = values.setdefault(name, shorthand)
            if configured != shorthand:
                raise InvalidSetting(f"{name}: given twice, as {shorthand!r} and as {configured!r}; give it once")
    settings, warnings = Settings.of(options.profile, values)
    settings, more = settings.for_brokers(len(options.node_ids))
    return settings, warnings + more


def _ids(seed: int, starts: int) -> Callable[[], UUID]:
    """Return a generator of ids that repeats with the seed; every start on a data directory has other ids."""
    # repeatable, not secret
    generator = random.Random(f"{seed}/{starts}" if starts else seed)  # noqa: S311
    return lambda: UUID(int=generator.getrandbits(128), version=4)


def _clock() -> Callable[[], int]:
    """Return a clock in microseconds since the epoch that is monotonic after its start."""
    epoch_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (epoch_ns + time.monotonic_ns()) // 1000


def _fill(runtime: ClusterRuntime, options: Options, now: int) -> list[str]:
    """Create the topics and records of the options; return a warning for each that the data directory overrides."""
    warnings = []
    existing = {name: len(topic.logs) for name, topic in runtime.cluster.topics.items()}
    for name, partitions in options.topics.items():
        if partitions < 1:
            raise ValueError(f"topic {name!r}: a topic has at least 1 partition, not {partitions}")
        if name in existing:
            if existing[name] != partitions:
                warnings.append(f"topic {name!r}: {existing[name]} partitions, as in the data directory")
            continue
        try:
            runtime.create_topic(name, partitions)
        except RefusedError as error:
            raise ValueError(f"topic {name!r}: {error}") from error
    for name, records in options.records.items():
        if name in existing:
            warnings.append(f"topic {name!r}: keeps the records of the data directory; the given ones are ignored")
            continue
        try:
            runtime.produce(now, name, records)
        except RefusedError as error:
            raise ValueError(f"records of topic {name!r}: {error}") from error
    return warnings
