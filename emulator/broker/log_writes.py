"""Log writes of a node and their completion, and the loading of `__consumer_offsets` partitions; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from koordinator.wire.errors import Error
from koordinator.wire.primitives import Malformed

from ..core.data.topic import OFFSETS_TOPIC
from .offsets_log import batch_of, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.effects import Append, Effect, WriteLog
    from ..core.node import NodeCore


class LogStore(Protocol):
    """The performer of log writes."""

    @property
    def is_idle(self) -> bool:
        """Whether all writes have ended."""

    def submit(self, write: WriteLog) -> None:
        """Queue a write."""

    def write_queued(self) -> None:
        """Return once all queued writes are durable or have failed."""

    def results(self) -> Iterator[tuple[WriteLog, OSError | None]]:
        """Take the performed writes, each with its failure, if any; a failure ends all later writes."""

    def barrier(self) -> Callable[[], bool]:
        """Return a check that all writes have ended that anything waits for now."""


class LogWrites:
    """The log writes of a node. An in-memory node (not `is_durable`) completes them at once.

    A durable node has at most one `WriteLog` in flight; later appends wait for the next one, which writes them
    together. Nothing is readable or acknowledged before it is durable.
    """

    def __init__(self, node: NodeCore, log: Callable[[str], None], *, is_durable: bool) -> None:
        self._node = node
        self._log = log
        self._is_durable = is_durable
        self._in_flight: WriteLog | None = None
        # tokens of the coordinator: in the write in flight, and in the next one
        self._writing: list[int] = []
        self._waiting: list[int] = []

    def append(self, now: int, effect: Append) -> list[Effect]:
        """Append records of a group to `__consumer_offsets`."""
        cluster = self._node.cluster
        if effect.token not in self._node.coordinator.store.writes:
            # `unload` has failed it while it was deferred
            return []
        if OFFSETS_TOPIC not in cluster.topics and cluster.changes.is_in_flight:
            cluster.changes.deferred.append((self._node.node_id, effect))
            return []
        batch = batch_of(effect.records, now)
        if len(batch) > cluster.batch_bytes_max(cluster.planned_offsets_topic()):
            return self._node.coordinator.appended(now, effect.token, Error.MESSAGE_TOO_LARGE)
        effects = self._node.data.append(now, cluster.offsets_topic(), effect.partition, batch)
        if not self._is_durable:
            return effects + self._node.coordinator.appended(now, effect.token, Error.NONE)
        self._waiting.append(effect.token)
        return effects

    def next_write(self) -> WriteLog | None:
        """Return a write of everything that waits; None if nothing waits or a write is in flight."""
        if self._in_flight is not None or not self._node.data.has_unflushed:
            return None
        self._writing, self._waiting = self._waiting, []
        self._in_flight = self._node.data.begin_flush()
        return self._in_flight

    def complete(self, now: int, write: WriteLog, error: Error) -> list[Effect]:
        """Complete the write in flight (NONE), or after any failed write end everything that is not durable."""
        if error is Error.NONE and write is not self._in_flight:
            # a write of this node's previous run
            return []
        self._in_flight = None
        tokens, self._writing = self._writing, []
        if error is not Error.NONE:
            # appends that wait follow the failed ones in the log
            tokens, self._waiting = tokens + self._waiting, []
        effects = self._node.data.flushed(now, error)
        for waiting in tokens:
            effects += self._node.coordinator.appended(now, waiting, error)
        return effects

    def load(self, now: int, partition: int) -> list[Effect]:
        """Load a partition of `__consumer_offsets` from its first record to its last, once all are durable."""
        coordinator = self._node.coordinator
        # the log is that of the plan as long as the topic is not created
        log = self._node.cluster.planned_offsets_topic().logs[partition]
        if not log.is_flushed:
            return []
        try:
            records = list(records_of(log.records()))
        except (Malformed, ImportError) as error:
            self._log(f"{OFFSETS_TOPIC}-{partition} cannot be loaded by node {self._node.node_id}: {error}")
            return coordinator.load_failed(now, partition)
        return coordinator.loaded(now, partition, records)
