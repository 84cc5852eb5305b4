"""What a node writes to `__consumer_offsets` and reads from it, and when that is on disk; still no I/O of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.primitives import Malformed

from ..core.data.topic import OFFSETS_TOPIC
from ..core.refusal import RefusedError
from .offsets_log import batch_of, records_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.effects import Append, Effect
    from ..core.node import NodeCore
    from .store import Store


class GroupLogs:
    """Writes and loads for a node. Without a `store` a write is done as soon as it is asked for.

    With one it waits, with all others, for `flush`: records are on disk before anybody is told of them.
    """

    def __init__(self, node: NodeCore, store: Store | None, log: Callable[[str], None]) -> None:
        self._node = node
        self._store = store
        self._log = log
        self._tokens: list[int] = []

    @property
    def wait(self) -> bool:
        """Whether something waits to be on disk: of groups, or of any other topic."""
        return self._store is not None and bool(self._tokens or self._node.data.has_unflushed)

    def append(self, now: int, effect: Append) -> list[Effect]:
        """Write records of a group."""
        try:
            topic = self._node.cluster.offsets_topic()
        except RefusedError as error:
            return self._node.appended(now, effect.token, error.error)
        effects = self._node.data.append(now, topic, effect.partition, batch_of(effect.records, now))
        if self._store is None:
            return effects + self._node.appended(now, effect.token, Error.NONE)
        self._tokens.append(effect.token)
        return effects

    def flush(self, now: int) -> list[Effect]:
        """Write what waits to be written, all at once; then let those go on who wait for it."""
        data, error = self._node.data, Error.NONE
        if self._store is None or not self.wait:
            return []
        try:
            for topic, partition, batches in data.unflushed():
                self._store.append(topic.name, topic.topic_id, partition, batches)
            self._store.sync()
        except OSError:
            error = Error.KAFKA_STORAGE_ERROR
        tokens, self._tokens = self._tokens, []
        effects = data.flushed(now, error)
        for token in tokens:
            effects += self._node.appended(now, token, error)
        for topic, partition, batches in data.compacted():
            self._store.rewrite(topic.name, topic.topic_id, partition, batches)
        return effects

    def load(self, now: int, partition: int) -> list[Effect]:
        """Read a partition from its first record to its last."""
        coordinator = self._node.coordinator
        log = self._node.cluster.log(OFFSETS_TOPIC, partition)
        try:
            records = [] if log is None else list(records_of(log.records()))
        except (Malformed, ImportError) as error:
            self._log(f"{OFFSETS_TOPIC}-{partition} cannot be loaded by node {self._node.node_id}: {error}")
            return coordinator.load_failed(now, partition)
        return coordinator.loaded(now, partition, records)
