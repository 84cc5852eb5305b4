"""The writes of a node's coordinators to their internal topics, and the loading of the partitions; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.primitives import Malformed

from ..core.data.topic import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from ..core.effects import Append, AppendShareState, AppendTransaction, Failed, InternalTopicWritten, TransactionEnded
from ..core.refusal import RefusedError
from .offsets_log import batch_of, entries_of
from .share_state_log import share_state_batch, share_states_of
from .transactions_log import transaction_batch, transactions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..core.data.log import PartitionLog
    from ..core.effects import CoordinatorWrite, Effect, InternalTopicEffect
    from ..core.node import NodeCore

TOPICS: Mapping[type, str] = {
    Append: OFFSETS_TOPIC,
    AppendTransaction: TRANSACTIONS_TOPIC,
    AppendShareState: SHARE_STATE_TOPIC,
}
"""The internal topic of each write."""

ENTRIES_OF: Mapping[str, Callable[[PartitionLog], Iterable[Any]]] = {
    OFFSETS_TOPIC: entries_of,
    TRANSACTIONS_TOPIC: transactions_of,
    SHARE_STATE_TOPIC: share_states_of,
}
"""The readers of the logs that coordinators load, by internal topic."""


class LogWrites:
    """Appends the records of a node's coordinators, tells them the result, and loads their partitions."""

    def __init__(self, node: NodeCore, log: Callable[[str], None]) -> None:
        self._node = node
        self._log = log

    def perform(self, now: int, effect: InternalTopicEffect) -> list[Effect]:
        """Perform an effect that concerns an internal topic and its coordinator."""
        match effect:
            case InternalTopicWritten(topic, partition):
                return self.reload(now, topic, partition)
            case TransactionEnded(partition, producer_id, is_commit):
                return self._node.coordinator.transaction_ended(now, partition, producer_id, is_commit=is_commit)
            case _:
                return self._append(now, effect)

    def _append(self, now: int, effect: CoordinatorWrite) -> list[Effect]:
        """Append records of a coordinator to its internal topic."""
        cluster = self._node.cluster
        name = TOPICS[type(effect)]
        coordinator = self._node.coordinators[name]
        if effect.token not in coordinator.store.writes:
            # it has failed with an earlier write that it was decided on, or with the end of the coordinator's term
            return coordinator.appended(now, effect.token, Error.NOT_COORDINATOR)
        batch = self._batch(effect, now)
        if len(batch) > cluster.planned_topic(name).batch_bytes_max(cluster.settings):
            return coordinator.appended(now, effect.token, Error.MESSAGE_TOO_LARGE)
        try:
            effects = self._node.data.append(now, cluster.internal_topic(name), effect.partition, batch)
        except RefusedError as refused:
            return coordinator.appended(now, effect.token, refused.error)
        return effects + coordinator.appended(now, effect.token, Error.NONE)

    def fail(self, now: int, effect: CoordinatorWrite) -> list[Effect]:
        """End a write that a bug has prevented; what waits for it gets an error."""
        name = TOPICS[type(effect)]
        try:
            return self._node.coordinators[name].appended(now, effect.token, Error.UNKNOWN_SERVER_ERROR)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            return [Failed(error)]

    def _batch(self, effect: CoordinatorWrite, now: int) -> bytes:
        if isinstance(effect, AppendShareState):
            return share_state_batch(effect.key, effect.record, now)
        if isinstance(effect, Append):
            return batch_of(effect.records, now, effect.producer, self._node.coordinator.store.dialect.offset_version)
        version = min(self._node.transactions.store.transaction_version, 1)
        return transaction_batch(effect.transactional_id, effect.record, version, now)

    def reload(self, now: int, topic: str, partition: int) -> list[Effect]:
        """Make the coordinator forget a partition of its internal topic, and load it again."""
        coordinator = self._node.coordinators[topic]
        effects = coordinator.unload(now, partition) + coordinator.begin_load(now, partition)
        return effects + self.load(now, topic, partition)

    def load(self, now: int, topic: str, partition: int) -> list[Effect]:
        """Load a partition of an internal topic, unless another node leads it now."""
        coordinator = self._node.coordinators[topic]
        if partition not in coordinator.store.loading:
            return []
        # the log is that of the plan as long as the topic is not created
        log = self._node.cluster.planned_topic(topic).logs[partition]
        try:
            records: list[Any] = list(ENTRIES_OF[topic](log))
        except (Malformed, ImportError) as error:
            self._log(f"{topic}-{partition} cannot be loaded by node {self._node.node_id}: {error}")
            return coordinator.load_failed(now, partition)
        try:
            return coordinator.loaded(now, partition, records)
        except Exception as bug:  # noqa: BLE001 - a bug ends the load of one partition
            self._log(f"{topic}-{partition} cannot be loaded by node {self._node.node_id}: a bug: {bug!r}")
            return [Failed(bug), *coordinator.load_failed(now, partition)]
