"""Running brokers of one release: one or two for each requested set of settings, while somebody needs them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
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


@dataclass
class _Wanted:
    """A cluster: its brokers, and how many scenarios want it."""

    brokers: Future[list[RealKafka]]
    users: int = 0


class Pool:
    """Starts brokers on first use, from any thread, and stops them when nobody wants them any more.

    A broker without a client still takes a fiftieth of a processor and 400 MB.
    """

    def __init__(self, release: Release) -> None:
        self.release = release
        self.commit_id = ""
        """The build commit that a broker reports, once one has started."""
        self._folder = TemporaryDirectory(prefix=f"kafka-{release.name}-", ignore_cleanup_errors=True)
        self._clusters: dict[_Key, _Wanted] = {}
        self._numbers = count()
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(AT_ONCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        clusters = [each.brokers for each in self._clusters.values()]
        wait(clusters)
        list(self._threads.map(_stop, clusters))
        self._threads.shutdown()
        self._folder.cleanup()

    def want(
        self, settings: Mapping[str, object], *, restarted: bool = False, nodes: int = 1
    ) -> Future[list[RealKafka]]:
        """Return the brokers of a cluster with these settings, starting them if needed; `leave` follows.

        `restarted`: not a cluster shared with scenarios that would notice a restart.
        """
        key = _key(settings, restarted, nodes)
        with self._lock:
            if key not in self._clusters:
                folder = Path(self._folder.name, str(next(self._numbers)))
                self._clusters[key] = _Wanted(self._threads.submit(self._started, folder, dict(key[0]), nodes))
            self._clusters[key].users += 1
            return self._clusters[key].brokers

    def leave(self, settings: Mapping[str, object], *, restarted: bool = False, nodes: int = 1) -> None:
        """End one use of a cluster; the last one stops its brokers."""
        key = _key(settings, restarted, nodes)
        with self._lock:
            cluster = self._clusters[key]
            cluster.users -= 1
            if not cluster.users:
                del self._clusters[key]
                self._threads.submit(_stop, cluster.brokers)

    def _started(self, folder: Path, settings: Mapping[str, str], nodes: int) -> list[RealKafka]:
        started: list[RealKafka] = []
        try:
            for number in range(nodes):
                own = folder / str(number)
                own.mkdir(parents=True)
                started.append(RealKafka(own, self.release, settings, *started))
                # the last one creates the topic of the groups, so that all lead some of its partitions
                started[-1].start(alone=number == nodes - 1)
            self.commit_id = started[0].commit_id
            for topic, partitions in TOPICS.items():
                started[0].create_topic(topic, partitions)
            if nodes == 1:
                _warm(*started, without=SESSIONS if SESSIONS_MAX in settings else frozenset())
        except BaseException:
            _stop_all(started)
            raise
        return started


_Key = tuple[frozenset[tuple[str, str]], bool, int]


def _key(settings: Mapping[str, object], restarted: bool, nodes: int) -> _Key:  # noqa: FBT001
    return frozenset((name, str(value)) for name, value in settings.items()), restarted, nodes


def _stop(brokers: Future[list[RealKafka]]) -> None:
    if brokers.exception() is None:
        _stop_all(brokers.result())


def _stop_all(started: Sequence[RealKafka]) -> None:
    for each in reversed(started):
        each.stop()


def _warm(kafka: RealKafka, without: Collection[ApiKey]) -> None:
    """Send each request once: the first of its kind is slow in Java."""
    with Asked(kafka.address, "warm", kafka.release) as asked:
        for key, make in REQUESTS.items():
            for version in () if key in without else asked.versions(key)[-1:]:
                asked.ask(within(make(asked, version), version), version)
