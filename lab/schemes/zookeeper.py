"""The first scheme: consumers watch ZooKeeper, and each computes its own partitions (Kafka 0.8's high-level consumer).

The rules are those of `ZookeeperConsumerConnector`: a consumer registers an ephemeral node, watches those of the others
and of the brokers, and after any change stops, releases its partitions, computes its range from its own view, and
claims each partition with an ephemeral node. A claim that another consumer holds makes the attempt fail: it releases
all claims, waits for `rebalance.backoff.ms`, and tries again, `rebalance.max.retries` times. The herd of notifications
and views that differ are not written down anywhere here; they follow from watches and lagging servers.

The watch on brokers is the article's: released consumers have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.control.assignors.eager import assign_ranges
from koordinator.emulator.control.assignors.members import Candidate

from ..load import TOPIC
from ..record import FactKind
from .clockwork import Clockwork, Process, Steps
from .ensemble import ROUND_TRIP_MS, Ensemble, NodeExistsError, NoNodeError
from .scheme import Scheme

if TYPE_CHECKING:
    from ..load import Load
    from .clockwork import SimulatedTask

IDS, OWNERS, BROKERS, PARTITIONS = "/consumers/G/ids", "/consumers/G/owners", "/brokers/ids", "/brokers/topics/t"

SESSION_TIMEOUT_MS = 6_000
"""`zookeeper.session.timeout.ms`."""

BACKOFF_MS, MAX_RETRIES = 2_000, 4
"""`rebalance.backoff.ms` (by default `zookeeper.sync.time.ms`) and `rebalance.max.retries`."""

PINGS_PER_SESSION = 3


class Consumer(Process):
    """A consumer process: its session, its claims, and the tasks that rebalance."""

    def __init__(self, scheme: ZookeeperScheme, name: str) -> None:
        super().__init__(scheme.clockwork)
        self._scheme = scheme
        self._zookeeper = scheme.zookeeper
        self._name = name
        self._id = scheme.process_id(name)
        self.owned: list[int] = []
        self._is_changed = True
        self._is_expired = False
        self._open()
        self._rebalancer: SimulatedTask | None = None
        self._rebalancer = self.run(self._rebalance_on_changes())
        self.run(self._keep_session())

    def close(self) -> None:
        """Close in order: stop, commit, and close the session."""
        self.is_alive = False
        self._zookeeper.close(self.session)

    def kill(self) -> None:
        """End without a word."""
        self.is_alive = False
        self.session.disconnect()

    def _open(self) -> None:
        self.session = self._zookeeper.connect(SESSION_TIMEOUT_MS, self._expired)

    def _expired(self) -> None:
        self._scheme.record.add(self._scheme.now_ms, FactKind.FENCED, self._name)
        self._is_expired = True

    def _keep_session(self) -> Steps[None]:
        while True:
            yield SESSION_TIMEOUT_MS // PINGS_PER_SESSION
            if not self._zookeeper.ping(self.session):
                self._changed()

    def _changed(self) -> None:
        self._is_changed = True
        if self._rebalancer is not None:
            self._rebalancer.wake()

    def _watch(self, path: str) -> None:
        self._zookeeper.children(self.session, path, lambda: self.call(lambda: self._event(path)))

    def _event(self, path: str) -> None:
        self.run(self._watch_again(path))

    def _watch_again(self, path: str) -> Steps[None]:
        """Leave the next watch with the next read: changes until then cause no event of their own."""
        yield ROUND_TRIP_MS
        self._watch(path)
        self._changed()

    def _rebalance_on_changes(self) -> Steps[None]:
        yield from self._register()
        while True:
            if not self._is_changed:
                yield None
                continue
            self._is_changed = False
            if self._is_expired:
                self._hold([], is_clean=False)
                self._is_expired = False
                self._open()
                yield from self._register()
            for _ in range(MAX_RETRIES):
                self._scheme.record.rebalances[self._name] += 1
                is_done = yield from self._rebalance()
                if is_done or self._is_expired:
                    break
                yield BACKOFF_MS

    def _register(self) -> Steps[None]:
        yield self._zookeeper.create(f"{IDS}/{self._id}", self.session)
        for path in (IDS, BROKERS, PARTITIONS):
            yield ROUND_TRIP_MS
            self._watch(path)

    def _rebalance(self) -> Steps[bool]:
        """Rebalance once; return whether all claims succeeded."""
        zookeeper, session = self._zookeeper, self.session
        claimed: list[int] = []
        try:
            if self.owned:
                released = self.owned
                # the fetchers stop and commit before the claims go
                self._hold([], is_clean=True)
                for number in released:
                    yield zookeeper.delete(f"{OWNERS}/{number}", session)
            yield ROUND_TRIP_MS
            consumers = zookeeper.children(session, IDS)
            yield zookeeper.read(session, IDS, consumers)
            mine = self._range(consumers, len(zookeeper.children(session, PARTITIONS)))
            yield zookeeper.read(session, PARTITIONS, map(str, mine))
            for number in mine:
                try:
                    yield zookeeper.create(f"{OWNERS}/{number}", session)
                    claimed.append(number)
                except NodeExistsError:
                    yield ROUND_TRIP_MS
        except NoNodeError:
            return False
        if len(claimed) < len(mine):
            for number in claimed:
                yield zookeeper.delete(f"{OWNERS}/{number}", session)
            return False
        self._hold(claimed, is_clean=True)
        return True

    def _range(self, consumers: list[str], partitions: int) -> list[int]:
        if self._id not in consumers:
            return []
        candidates = [Candidate(each, None, (TOPIC,)) for each in consumers]
        return assign_ranges(candidates, {TOPIC: partitions})[self._id].get(TOPIC, [])

    def _hold(self, partitions: list[int], *, is_clean: bool) -> None:
        if self.owned or partitions:
            self.owned = partitions
            self._scheme.record.add(self._scheme.now_ms, FactKind.HOLDS, self._name, partitions, is_clean=is_clean)


class ZookeeperScheme(Scheme):
    """Consumers, brokers and a topic in one ensemble, whose servers lag by `lag_ms` (least, most)."""

    def __init__(self, load: Load, lag_ms: tuple[int, int] = (1, 20)) -> None:
        super().__init__(load)
        self.clockwork = Clockwork()
        self.zookeeper = Ensemble(self.clockwork, self.random, self.record, lag_ms=lag_ms)
        self._consumers: dict[str, Consumer] = {}
        for broker in ("1", "2"):
            self.zookeeper.create(f"{BROKERS}/{broker}")
        for number in range(load.partitions):
            self.zookeeper.create(f"{PARTITIONS}/{number}")
        self.pass_time(1)

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self.clockwork.now_ms

    def pass_time(self, seconds: float) -> None:
        """Advance time, with everything that is due."""
        self.clockwork.run(self.now_ms + round(seconds * 1000))

    def start(self, name: str, batch_s: float | None = None) -> None:
        """Start a consumer. Its batches delay no rebalance: fetchers stop while records are processed."""
        self._up(name, batch_s)
        self._consumers[name] = Consumer(self, name)

    def close(self, name: str) -> None:
        """Close a consumer in order."""
        self._consumers.pop(name).close()
        self.record.add(self.now_ms, FactKind.DOWN, name)

    def kill(self, name: str) -> None:
        """Kill a consumer: its session expires."""
        self._consumers.pop(name).kill()
        self.record.add(self.now_ms, FactKind.DOWN, name, is_clean=False)

    def cut_off(self, name: str) -> None:
        """Keep a consumer from the ensemble: nothing but its fetchers goes on."""
        self._consumers[name].is_paused = True

    def reconnect(self, name: str) -> None:
        """End a `cut_off`; events of a session that is still open arrive."""
        self._consumers[name].resume()

    def grow(self, count: int) -> None:
        """Add partitions."""
        for number in range(self.partitions, self.partitions + count):
            self.zookeeper.create(f"{PARTITIONS}/{number}")
        self.partitions += count
        self.record.add(self.now_ms, FactKind.GREW, partitions=range(self.partitions))

    def stop_broker(self) -> None:
        """Stop a broker: its node in ZooKeeper goes."""
        self.zookeeper.delete(f"{BROKERS}/1")

    def start_broker(self) -> None:
        """Start the stopped broker again."""
        self.zookeeper.create(f"{BROKERS}/1")
