"""Running brokers of one release: one or two for each requested set of settings."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Self

from builders.full_requests import REQUESTS, Asked
from builders.requests import within

from brokers.real_kafka import RealKafka
from koordinator.wire.apis import ApiKey

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from brokers.kafka_releases import Release

AT_ONCE = 2
"""Brokers started concurrently: a start takes a processor for some seconds."""

TOPICS = {"t": 4, "u": 2}
"""The topics of each broker, with their partitions."""

SESSIONS_MAX = "group.share.max.share.sessions"
SESSIONS = frozenset({ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
"""Requests that leave a share session behind; where those have a limit, scenarios need them all."""


class Pool:
    """Starts brokers on first use, from any thread, and stops them all at the end."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self._folder = TemporaryDirectory(prefix=f"kafka-{release.name}-", ignore_cleanup_errors=True)
        self._brokers: dict[tuple[frozenset[tuple[str, str]], bool, int], Future[list[RealKafka]]] = {}
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(AT_ONCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        clusters = self._brokers.values()
        wait(clusters)
        list(self._threads.map(_stop, [each.result() for each in clusters if each.exception() is None]))
        self._threads.shutdown()
        self._folder.cleanup()

    @property
    def commit_id(self) -> str:
        """Return the build commit that a broker reports."""
        return next(iter(self._brokers.values())).result()[0].commit_id

    def want(
        self, settings: Mapping[str, object], *, restarted: bool = False, nodes: int = 1
    ) -> Future[list[RealKafka]]:
        """Return the brokers of a cluster with these settings, starting one if needed.

        `restarted`: not a cluster shared with scenarios that would notice a restart.
        """
        texts = {name: str(value) for name, value in settings.items()}
        key = (frozenset(texts.items()), restarted, nodes)
        with self._lock:
            if key not in self._brokers:
                folder = Path(self._folder.name, str(len(self._brokers)))
                self._brokers[key] = self._threads.submit(self._started, folder, texts, nodes)
            return self._brokers[key]

    def _started(self, folder: Path, settings: Mapping[str, str], nodes: int) -> list[RealKafka]:
        started: list[RealKafka] = []
        try:
            for number in range(nodes):
                own = folder / str(number)
                own.mkdir(parents=True)
                started.append(RealKafka(own, self.release, settings, *started))
                # the last one creates the topic of the groups, so that all lead some of its partitions
                started[-1].start(alone=number == nodes - 1)
            for topic, partitions in TOPICS.items():
                started[0].create_topic(topic, partitions)
            if nodes == 1:
                _warm(*started, without=SESSIONS if SESSIONS_MAX in settings else frozenset())
        except BaseException:
            _stop(started)
            raise
        return started


def _stop(started: Sequence[RealKafka]) -> None:
    for each in reversed(started):
        each.stop()


def _warm(kafka: RealKafka, without: Collection[ApiKey]) -> None:
    """Send each request once: the first of its kind is slow in Java."""
    with Asked(kafka.address, "warm", kafka.release) as asked:
        for key, make in REQUESTS.items():
            for version in () if key in without else asked.versions(key)[-1:]:
                asked.ask(within(make(asked, version), version), version)
