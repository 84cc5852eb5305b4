"""The two sides of an exploration: Apache Kafka and the emulator, each with one broker."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from brokers.real_kafka import RealKafka

from exploring.data import playing as data_playing
from exploring.data import steps as data_steps
from exploring.fields import playing as fields_playing
from exploring.fields import steps as fields_steps
from exploring.shares import playing as shares_playing
from exploring.shares import steps as shares_steps
from exploring.transactions.playing import Playing
from exploring.transactions.rounds import Target, explore
from exploring.transactions.steps import generate
from koordinator import Emulator
from koordinator.client.connection import Address
from koordinator.emulator.core.data import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from exploring.releases import Release
    from exploring.transactions.rounds import Findings, Plays
    from exploring.transactions.steps import Sequence


@dataclass(frozen=True)
class Kind:
    """What to explore: sequences, the class that plays one, and the configs of the brokers."""

    generate: Callable[[str, Release], Sequence]
    plays: Callable[[Sequence, Address, str], Plays]
    config: Mapping[str, str]


TRANSACTIONS = Kind(
    generate,
    Playing,
    {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "group.initial.rebalance.delay.ms": "0",
    },
)
DATA = Kind(
    data_steps.generate,
    data_playing.Playing,
    # a sequence leaves its sessions open
    {"max.incremental.fetch.session.cache.slots": "100000"},
)

FIELDS = Kind(
    fields_steps.generate,
    fields_playing.Playing,
    {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": f"{fields_playing.OFFSETS_PARTITIONS}",
        "group.consumer.heartbeat.interval.ms": "5000",
        "group.consumer.assignment.interval.ms": "0",
        # a sequence takes minutes on a busy machine
        "group.consumer.max.session.timeout.ms": "3600000",
        "group.consumer.session.timeout.ms": "3600000",
        # nothing expires by time
        "offsets.retention.check.interval.ms": "86400000",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "86400000",
    },
)


SHARES = Kind(
    shares_steps.generate,
    shares_playing.Playing,
    {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": f"{fields_playing.OFFSETS_PARTITIONS}",
        "group.share.assignment.interval.ms": "0",
        "group.share.heartbeat.interval.ms": "5000",
        # nothing expires by time
        "group.share.session.timeout.ms": "3600000",
        "group.share.max.session.timeout.ms": "3600000",
        "group.share.record.lock.duration.ms": "3600000",
        "group.share.max.record.lock.duration.ms": "3600000",
        "offsets.retention.check.interval.ms": "86400000",
    },
)


@contextmanager
def emulator(release: Release, kind: Kind = TRANSACTIONS) -> Iterator[Target]:
    """Run the emulator of a release. Its offsets topic keeps all records, as Kafka's does for a long time."""
    with (
        patch.object(log, "COMPACTED_BYTES_MIN", 1 << 30),
        Emulator(kafka_version=release.line, config={**kind.config, **release.settings}) as cluster,
    ):
        host, _, port = cluster.bootstrap_servers.rpartition(":")

        def restart() -> None:
            cluster.nodes[1].stop()
            cluster.nodes[1].start()

        yield Target(Address(host, int(port)), restart, kind.plays)


STEADY = {"group.consumer.assignor.offload.enable": "false"}
"""Otherwise 4.4 may answer a heartbeat before it has computed the target; the emulator never does."""


@contextmanager
def kafka(release: Release, kind: Kind = TRANSACTIONS) -> Iterator[Target]:
    """Run Apache Kafka."""
    with tempfile.TemporaryDirectory() as folder, RealKafka(Path(folder), release, {**kind.config, **STEADY}) as broker:
        yield Target(broker.address, broker.restart, kind.plays)


def explore_release(
    release: Release, seeds: Iterable[int], say: Callable[[str], None], kind: Kind = TRANSACTIONS
) -> Findings:
    """Play the sequences of these seeds to both sides."""
    with emulator(release, kind) as ours, kafka(release, kind) as theirs:
        return explore(ours, theirs, [kind.generate(f"{seed}", release) for seed in seeds], say)
