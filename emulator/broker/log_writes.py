"""Log writes of a node and their completion, and the loading of its coordinators' partitions; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from koordinator.wire.errors import Error
from koordinator.wire.primitives import Malformed

from ..core.data.topic import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ..core.effects import Append, Failed, InternalTopicWritten, TransactionEnded
from .offsets_log import batch_of, entries_of
from .transactions_log import transaction_batch, transactions_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.effects import AppendTransaction, Effect, InternalTopicEffect, WriteLog
    from ..core.node import NodeCore

    Completion = Callable[[int, int, Error], list[Effect]]
    """The input `appended` of a coordinator."""


class LogStore(Protocol):
    """The performer of log writes."""

    def perform(self, write: WriteLog) -> OSError | None:
        """Perform a write; return why it failed, or None. A failed one has written nothing."""


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
        # tokens of the coordinators: in the write in flight, and in the next one
        self._writing: list[tuple[Completion, int]] = []
        self._waiting: list[tuple[Completion, int]] = []

    def perform(self, now: int, effect: InternalTopicEffect) -> list[Effect]:
        """Perform an effect that concerns an internal topic and its coordinator."""
        match effect:
            case InternalTopicWritten(topic, partition):
                return self.reload(now, topic, partition)
            case TransactionEnded(partition, producer_id, is_commit):
                return self._node.coordinator.transaction_ended(now, partition, producer_id, is_commit=is_commit)
            case _:
                return self._append(now, effect)

    def _append(self, now: int, effect: Append | AppendTransaction) -> list[Effect]:
        """Append records of a coordinator to its internal topic."""
        cluster, node = self._node.cluster, self._node
        is_of_group = isinstance(effect, Append)
        name = OFFSETS_TOPIC if is_of_group else TRANSACTIONS_TOPIC
        coordinator = node.coordinators[name]
        if effect.token not in coordinator.store.writes:
            # `unload` has failed it while it was deferred
            return []
        if name not in cluster.topics and cluster.changes.is_in_flight:
            cluster.changes.deferred.append((node.node_id, effect))
            return []
        appended, batch = coordinator.appended, self._batch(effect, now)
        if len(batch) > cluster.planned_topic(name).batch_bytes_max(cluster.settings):
            return appended(now, effect.token, Error.MESSAGE_TOO_LARGE)
        effects = node.data.append(now, cluster.internal_topic(name), effect.partition, batch)
        if not self._is_durable:
            return effects + appended(now, effect.token, Error.NONE)
        self._waiting.append((appended, effect.token))
        return effects

    def fail(self, now: int, effect: Append | AppendTransaction) -> list[Effect]:
        """End a write that a bug has prevented; what waits for it gets an error."""
        name = OFFSETS_TOPIC if isinstance(effect, Append) else TRANSACTIONS_TOPIC
        try:
            return self._node.coordinators[name].appended(now, effect.token, Error.UNKNOWN_SERVER_ERROR)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            return [Failed(error)]

    def _batch(self, effect: Append | AppendTransaction, now: int) -> bytes:
        if isinstance(effect, Append):
            return batch_of(effect.records, now, effect.producer, self._node.coordinator.store.dialect.offset_version)
        version = min(self._node.transactions.store.transaction_version, 1)
        return transaction_batch(effect.transactional_id, effect.record, version, now)

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
        for appended, waiting in tokens:
            try:
                effects += appended(now, waiting, error)
            except Exception as bug:  # noqa: BLE001 - a bug ends one request
                effects.append(Failed(bug))
        return effects

    def reload(self, now: int, topic: str, partition: int) -> list[Effect]:
        """Make the coordinator forget a partition of its internal topic, and load it again."""
        coordinator = self._node.coordinators[topic]
        effects = coordinator.unload(now, partition) + coordinator.begin_load(now, partition)
        return effects + self.load(now, topic, partition)

    def load(self, now: int, topic: str, partition: int) -> list[Effect]:
        """Load a partition of an internal topic, once its records are durable, unless another node leads it now."""
        coordinator = self._node.coordinators[topic]
        if partition not in coordinator.store.loading:
            return []
        # the log is that of the plan as long as the topic is not created
        log = self._node.cluster.planned_topic(topic).logs[partition]
        if not log.is_flushed:
            return []
        try:
            records: list[Any] = list(entries_of(log) if topic == OFFSETS_TOPIC else transactions_of(log))
        except (Malformed, ImportError) as error:
            self._log(f"{topic}-{partition} cannot be loaded by node {self._node.node_id}: {error}")
            return coordinator.load_failed(now, partition)
        try:
            return coordinator.loaded(now, partition, records)
        except Exception as bug:  # noqa: BLE001 - a bug ends the load of one partition
            self._log(f"{topic}-{partition} cannot be loaded by node {self._node.node_id}: a bug: {bug!r}")
            return [Failed(bug), *coordinator.load_failed(now, partition)]
