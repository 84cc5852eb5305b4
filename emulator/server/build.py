"""What a cluster is made of, put together from a user's wishes. Chance and the wall clock enter here, and only here."""

from __future__ import annotations

import base64
import logging
import platform
import random
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator import __version__

from ..broker.cluster_runtime import ClusterRuntime
from ..broker.listeners import Listeners, advertised
from ..broker.unreached_listeners import UnreachedListeners
from ..config.options import BROKERS_MAX
from ..config.settings import InvalidSetting, Settings
from ..control.control import Control
from ..core.cluster import ClusterState
from ..core.refusal import RefusedError
from ..storage.data_dir import DataDir
from ..storage.recovery import offsets_partitions, restore_topics
from ..trace.file import TraceFile
from ..trace.trace import Trace
from .node_listeners import NodeListeners
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from ..config.options import Options

SEED_BITS = 32


@dataclass(frozen=True, slots=True)
class BuiltCluster:
    """A cluster without a way in: what it is made of, apart from sockets. `warnings` are worth showing once."""

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
        """Empty the trace file, if there is one: what is written to it from now on is of this cluster."""
        if self.trace_file is not None:
            self.trace_file.begin()

    def close(self) -> None:
        """Close the trace file and the data directory, if there are any, after serving has ended."""
        if self.trace_file is not None:
            self.trace_file.close()
        if self.data_dir is not None:
            self.data_dir.close()


@dataclass(frozen=True, slots=True)
class ServedCluster(BuiltCluster):
    """A cluster that is ready to be served."""

    server: Server
    node_listeners: NodeListeners
    control: Control

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to, `host:port` of each node; the ports are known once `serve` has started."""
        return self.node_listeners.bootstrap_servers()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Listen and serve until cancelled; `bootstrap_servers` is right from the report of the start on.

        Raises OSError if nothing can listen there; nothing has started then.
        """
        await self.node_listeners.serve(self.begin, task_status=task_status)


def build(options: Options, log: Callable[[str], None] | None = None) -> ServedCluster:
    """Make a cluster; nothing listens yet.

    `log` gets one line for every connection closed for a fault, and for a trace file or a data directory that fails;
    without it they are warnings of the logger `koordinator`. Raises InvalidSetting, DataDirRefused, ValueError for a
    topic, record or port that cannot be, and OSError if the trace file cannot be opened.
    """
    listeners = Listeners(options.host, options.port, options.listeners, options.advertised, options.brokers)
    world = build_cluster(options, _clock(), log)
    world.runtime.unreached_listeners = UnreachedListeners(
        world.runtime, log or logging.getLogger("koordinator").warning
    )
    server = Server(world.runtime, world.started_at)
    node_listeners = NodeListeners(world.runtime, server, listeners)
    control = Control(world.runtime, node_listeners, server.perform, world.seed)
    made = {each.name: getattr(world, each.name) for each in fields(world)}
    return ServedCluster(**made, server=server, node_listeners=node_listeners, control=control)


def build_cluster(
    options: Options,
    wall_us: Callable[[], int],
    log: Callable[[str], None] | None = None,
) -> BuiltCluster:
    """Make a cluster without sockets; `wall_us` is its wall clock in microseconds. Raises what `build` raises."""
    log = log or logging.getLogger("koordinator").warning
    if not 1 <= options.brokers <= BROKERS_MAX:
        raise ValueError(f"brokers {options.brokers}: must be from 1 to {BROKERS_MAX}")
    settings, warnings = _settings(options)
    data_dir = None if options.data_dir is None else DataDir(Path(options.data_dir), log)
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
        warnings.append(f"offsets.topic.num.partitions: {partitions}, as __consumer_offsets has in the data directory")
        settings = replace(settings, offsets_topic_num_partitions=partitions)
    cluster = ClusterState(cluster_id, settings, new_uuid)
    started_at = wall_us() // 1000
    # before any topic, so that topics have a leader; the ports follow when they are known
    for node_id in range(1, options.brokers + 1):
        cluster.register(node_id, advertised(options.host), 0)
    if data_dir is not None:
        data_dir.begin(cluster_id)
        restore_topics(cluster, data_dir)
    header = {
        "cluster": cluster_id,
        "emulator_version": __version__,
        "python": platform.python_version(),
        "seed": seed,
        **options.about,
    }
    trace = Trace(wall_us, sink=trace_file, header=header)
    runtime = ClusterRuntime(started_at, cluster, settings, new_uuid, trace, log, data_dir)
    warnings += _fill(runtime, options, started_at)
    return BuiltCluster(
        options, settings, tuple(warnings), seed, started_at, cluster, trace, runtime, trace_file, data_dir
    )


def _settings(options: Options) -> tuple[Settings, list[str]]:
    values = dict(options.config)
    ours = {
        "error.codes": options.error_codes,
        "group.clock": options.clock,
        "kafka.version": options.kafka_version,
    }
    for name, wanted in ours.items():
        if wanted is not None:
            given = values.setdefault(name, wanted)
            if given != wanted:
                raise InvalidSetting(f"{name}: given twice, as {wanted!r} and as {given!r}")
    given, warnings = Settings.of(options.profile, values)
    settings, more = given.for_brokers(options.brokers)
    return settings, warnings + more


def _ids(seed: int, starts: int) -> Callable[[], UUID]:
    """Ids that look random, the same ones for the same seed; but not those of earlier starts on a data directory."""
    # these ids are to be repeatable, not secret
    chance = random.Random(f"{seed}/{starts}" if starts else seed)  # noqa: S311
    return lambda: UUID(int=chance.getrandbits(128), version=4)


def _clock() -> Callable[[], int]:
    """The wall clock in microseconds since the epoch, read once; from then on it only goes ahead."""
    epoch_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (epoch_ns + time.monotonic_ns()) // 1000


def _fill(runtime: ClusterRuntime, options: Options, now: int) -> list[str]:
    """Make the topics and records that are wished; a line for each that the data directory has another way."""
    warnings = []
    kept = {name: len(topic.logs) for name, topic in runtime.cluster.topics.items()}
    for name, partitions in options.topics.items():
        if partitions < 1:
            raise ValueError(f"topic {name!r}: a topic has at least 1 partition, not {partitions}")
        if name in kept:
            if kept[name] != partitions:
                warnings.append(f"topic {name!r}: {kept[name]} partitions, as it has in the data directory")
            continue
        try:
            runtime.create_topic(now, name, partitions)
        except RefusedError as error:
            raise ValueError(f"topic {name!r}: {error}") from error
    for name, records in options.records.items():
        if name in kept:
            warnings.append(f"topic {name!r}: has the records of the data directory, and no others")
            continue
        try:
            runtime.produce(now, name, records)
        except RefusedError as error:
            raise ValueError(f"records of topic {name!r}: {error}") from error
    return warnings
