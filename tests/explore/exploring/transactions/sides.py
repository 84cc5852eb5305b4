"""The two sides of an exploration: Apache Kafka and the emulator, each with one broker."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from brokers.real_kafka import RealKafka

from exploring.transactions.rounds import Target, explore
from exploring.transactions.steps import generate
from koordinator import Emulator
from koordinator.client.connection import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from exploring.releases import Release
    from exploring.transactions.rounds import Findings

CONFIG = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100", "group.initial.rebalance.delay.ms": "0"}


@contextmanager
def emulator(release: Release) -> Iterator[Target]:
    """Run the emulator of a release."""
    with Emulator(kafka_version=release.line, config={**CONFIG, **release.settings}) as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")

        def restart() -> None:
            cluster.nodes[1].stop()
            cluster.nodes[1].start()

        yield Target(Address(host, int(port)), restart)


@contextmanager
def kafka(release: Release) -> Iterator[Target]:
    """Run Apache Kafka."""
    with tempfile.TemporaryDirectory() as folder, RealKafka(Path(folder), release, CONFIG) as broker:
        yield Target(broker.address, broker.restart)


def explore_release(release: Release, seeds: Iterable[int], say: Callable[[str], None]) -> Findings:
    """Play the sequences of these seeds to both sides."""
    with emulator(release) as ours, kafka(release) as theirs:
        return explore(ours, theirs, [generate(f"{seed}", release) for seed in seeds], say)
