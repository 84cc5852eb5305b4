"""What a cluster is made of, put together from a user's wishes. Chance and the wall clock enter here, and only here."""

from __future__ import annotations

import base64
import logging
import platform
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator import __version__
from koordinator.emulator.broker import Broker
from koordinator.emulator.core.cluster import BrokerAddress, Cluster
from koordinator.emulator.core.coordinator import Coordinator
from koordinator.emulator.core.data import DataPlane
from koordinator.emulator.core.node import Node
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.settings import InvalidSetting, Settings
from koordinator.emulator.shell import Shell, advertised, host_port, listen, port_of
from koordinator.emulator.trace import Trace
from koordinator.emulator.trace_file import TraceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import trio

    from koordinator.emulator.core.seeds import SeedRecord

NODE_ID = 1
"""The id of the one broker."""

PORT_MAX = 65_535
SEED_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user can ask of a cluster.

    `topics` gives partitions by name; `records` what is in topics from the start (a topic that is not in `topics` is
    made as for a client). `config` has settings under Kafka's names; `profile`, `kafka_version` and `error_codes` are
    settings of ours that may stand there as well, None means that they are not given here. `port` 0 is any free port.
    `seed` None is any seed; it decides every id the cluster makes. `trace` is a file for the trace, which is emptied
    when the cluster starts.
    """

    host: str = "127.0.0.1"
    port: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)
    records: Mapping[str, Sequence[SeedRecord]] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    profile: str | None = None
    kafka_version: str | None = None
    error_codes: str | None = None
    trace: str | Path | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A cluster that is ready to be served. `warnings` are worth showing to the user once."""

    options: Options
    settings: Settings
    warnings: tuple[str, ...]
    seed: int
    cluster: Cluster
    node: Node
    trace: Trace
    broker: Broker
    shell: Shell
    trace_file: TraceFile | None

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to, `host:port`; the port is known once `serve` has started."""
        address = self.cluster.brokers[NODE_ID]
        return host_port(address.host, address.port)

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Listen and serve until cancelled; `bootstrap_servers` is right from the report of the start on.

        Raises OSError if nothing can listen there; nothing has started then.
        """
        listeners = await listen(self.options.host, self.options.port)
        address = self.cluster.brokers[NODE_ID]
        address.port = port_of(listeners)
        if self.trace_file is not None:
            self.trace_file.begin()
        await self.shell.serve(listeners, task_status=task_status)

    def close(self) -> None:
        """Close the trace file, if there is one, after serving has ended."""
        if self.trace_file is not None:
            self.trace_file.close()


def build(options: Options, log: Callable[[str], None] | None = None) -> Parts:
    """Make a cluster; nothing listens yet.

    `log` gets one line for every connection closed for a fault, and for a trace file that fails; without it they are
    warnings of the logger `koordinator`. Raises InvalidSetting, ValueError for a topic, record or port that cannot
    be, and OSError if the trace file cannot be opened.
    """
    log = log or logging.getLogger("koordinator").warning
    if not 0 <= options.port <= PORT_MAX:
        raise ValueError(f"port {options.port}: must be from 0 to {PORT_MAX}")
    settings, warnings = _settings(options)
    seed = random.SystemRandom().getrandbits(SEED_BITS) if options.seed is None else options.seed
    new_uuid = _ids(seed)
    cluster_id = base64.urlsafe_b64encode(new_uuid().bytes).rstrip(b"=").decode()
    cluster = Cluster(cluster_id, settings, new_uuid)
    # before any topic, so that topics have a leader; the port follows when it is known
    cluster.brokers[NODE_ID] = BrokerAddress(NODE_ID, advertised(options.host), options.port)
    wall_us = _clock()
    started_at = wall_us() // 1000
    coordinator = Coordinator(started_at, cluster, settings, new_uuid)
    node = Node(NODE_ID, cluster, coordinator, lambda hook: DataPlane(cluster, settings, new_uuid, hook))
    _fill(node.data, options, started_at)
    trace_file = None if options.trace is None else TraceFile(Path(options.trace), log)
    header = {
        "cluster": cluster_id,
        "emulator_version": __version__,
        "python": platform.python_version(),
        "seed": seed,
    }
    trace = Trace(wall_us, sink=trace_file, header=header)
    broker = Broker(node, settings, trace, log)
    shell = Shell(broker, started_at)
    return Parts(options, settings, tuple(warnings), seed, cluster, node, trace, broker, shell, trace_file)


def _settings(options: Options) -> tuple[Settings, list[str]]:
    values = dict(options.config)
    for name, wanted in (("error.codes", options.error_codes), ("kafka.version", options.kafka_version)):
        if wanted is not None:
            given = values.setdefault(name, wanted)
            if given != wanted:
                raise InvalidSetting(f"{name}: given twice, as {wanted!r} and as {given!r}")
    return Settings.of(options.profile, values)


def _ids(seed: int) -> Callable[[], UUID]:
    """Ids that look random, the same ones for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - these ids are to be repeatable, not secret
    return lambda: UUID(int=chance.getrandbits(128), version=4)


def _clock() -> Callable[[], int]:
    """The wall clock in microseconds since the epoch, read once; from then on it only goes ahead."""
    epoch_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (epoch_ns + time.monotonic_ns()) // 1000


def _fill(data: DataPlane, options: Options, now: int) -> None:
    for name, partitions in options.topics.items():
        if partitions < 1:
            raise ValueError(f"topic {name!r}: a topic has at least 1 partition, not {partitions}")
        try:
            data.create_topic(now, name, partitions)
        except RefusedError as error:
            raise ValueError(f"topic {name!r}: {error}") from error
    for name, records in options.records.items():
        try:
            data.produce(now, name, records)
        except RefusedError as error:
            raise ValueError(f"records of topic {name!r}: {error}") from error
