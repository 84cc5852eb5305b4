"""The share partitions of one share coordinator, and its writes in flight.

A record takes effect at once, because the next request builds on it; a failed write takes it back, with all later ones
of the partition. Kafka: `CoordinatorRuntime`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.share_state_records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey
from koordinator.wire.values import mutable

from ..data.topic import SHARE_STATE_TOPIC, share_state_key
from ..effects import AppendShareState, Reply
from ..journal import Journal, JournaledTable
from .batches import combined, swept
from .state import StateKey, of_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.share_state_records import Key, ShareUpdateValue, Value

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Call, Effect
    from .batches import Combine
    from .state import ShareState


@mutable
class ShareStateWrite:
    """A record in flight. `answered` gets the result of the write."""

    key: StateKey
    journal: Journal
    answered: Callable[[Error], None]


class ShareStateStore:
    """The states of the share partitions whose partition of `__share_group_state` this node leads."""

    def __init__(self, cluster: ClusterState, settings: Settings) -> None:
        self.cluster = cluster
        self.settings = settings
        self.states: JournaledTable[StateKey, ShareState] = JournaledTable()
        self.owned: set[int] = set()
        self.loading: set[int] = set()
        self.writes: dict[int, ShareStateWrite] = {}
        self.newest_write = 0
        """The token of the newest write."""
        self._out: list[Effect] = []

    @property
    def combine(self) -> Combine:
        """How the batches of a write are merged."""
        return swept if self.cluster.features.dialect.share_writes_go_forward else combined

    def partition_of(self, key: StateKey) -> int:
        """Return the partition of `__share_group_state` that stores a share partition."""
        return self.cluster.partition_of(share_state_key(*key), SHARE_STATE_TOPIC)

    def status(self, key: StateKey) -> Error:
        """Return NONE if this node serves a share partition, else 14 or 16."""
        partition = self.partition_of(key)
        if partition in self.loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return Error.NONE if partition in self.owned else Error.NOT_COORDINATOR

    def write_snapshot(self, now: int, key: StateKey, state: ShareState, answered: Callable[[Error], None]) -> None:
        """Write the whole state of a share partition."""
        self._write(
            key,
            ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
            state.snapshot(now),
            answered,
        )

    def write_update(self, key: StateKey, update: ShareUpdateValue, answered: Callable[[Error], None]) -> None:
        """Write a change of a share partition."""
        self._write(
            key, ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), update, answered
        )

    def write_tombstone(self, key: StateKey, answered: Callable[[Error], None]) -> None:
        """Write that a share partition has no state any more."""
        self._write(
            key, ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), None, answered
        )

    def _write(self, key: StateKey, record_key: Key, record: Value | None, answered: Callable[[Error], None]) -> None:
        journal = Journal()
        with journal:
            self.replay(record_key, record, journal)
            self.newest_write += 1
            self.writes[self.newest_write] = ShareStateWrite(key, journal, answered)
            self._out.append(AppendShareState(self.newest_write, self.partition_of(key), record_key, record))

    def take_back(self, newest: int) -> None:
        """Take back the changes of this input after its write `newest`, because a bug has ended it."""
        for token in [each for each in reversed(self.writes) if each > newest]:
            self.writes.pop(token).journal.revert()
        self._out = [
            effect for effect in self._out if not (isinstance(effect, AppendShareState) and effect.token > newest)
        ]

    def replay(self, record_key: Key, record: Value | None, journal: Journal) -> None:
        """Apply a record. An update without a snapshot counts for nothing."""
        key = StateKey(record_key.group_id, record_key.topic_id, record_key.partition)
        if record is None:
            journal.pop(self.states, key)
        elif isinstance(record, ShareSnapshotValue):
            journal.put(self.states, key, of_snapshot(record, self._updates_after_snapshot(key)))
        elif key in self.states:
            journal.put(self.states, key, self.states[key].updated(record, self.combine))

    def _updates_after_snapshot(self, key: StateKey) -> int:
        """Return the number of updates that count after a snapshot: one that is not due resets nothing.

        Kafka: `ShareCoordinatorShard.handleShareSnapshot`.
        """
        updates = self.states[key].updates if key in self.states else 0
        return updates if updates < self.settings.share_coordinator_snapshot_update_records_per_snapshot else 0

    def appended(self, token: int, error: Error) -> None:
        """Complete a write, successfully (NONE) or not."""
        write = self.writes.pop(token, None)
        if write is None:
            # `unload`, or an earlier write, has failed this one already
            return
        later: dict[int, ShareStateWrite] = {}
        if error is not Error.NONE:
            later = {other: each for other, each in self.writes.items() if each.key == write.key}
            for each in reversed([write, *later.values()]):
                each.journal.revert()
        write.answered(error)
        for other in later:
            self.appended(other, error)

    def reply(self, call: Call, response: Message) -> None:
        """Answer a call."""
        self._out.append(Reply(call, response))

    def emit(self, effect: Effect) -> None:
        """Add an effect to the result of this input."""
        self._out.append(effect)

    def drain(self) -> list[Effect]:
        """Return the effects of this input."""
        out, self._out = self._out, []
        return out
