"""The share partitions that a node leads, in memory: they are loaded, changed, stored and dropped (KIP-932).

A share partition is loaded from the share coordinator when it is first fetched. It stays until this node does not lead
it any more, its state is fenced, or the last connection of its group has closed (`SharePartitionManager`). Locks end
in the time of the group's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...timers import DeadLetterRetry, RecordLockExpiry, ShareStateRetry
from .batches import RecordState
from .dead_letters import DeadLetters, Written
from .exchanges import empty_row
from .facts import DeadLettersWritten, LocksEnded, RecordsArchived
from .in_flight import InvalidStateError
from .partition import SharePartition
from .settings import ShareSettings
from .state_requests import LedPartition, LoadedState, StateRequests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from ...cluster import ClusterState
    from ...effects import Effect, SendRequest
    from ...refusal import Refusal
    from ...timers import DataTimerKey, Timers
    from .batches import StateBatch
    from .exchanges import WaitingFetch
    from .partition import DeadRecords, StateWrite
    from .sessions import PartitionKey

DROPS = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.GROUP_ID_NOT_FOUND, Error.UNKNOWN_TOPIC_OR_PARTITION})
"""The errors of a write after which a share partition is dropped, and loaded by its next fetch."""

LeaderKey = tuple[str, "UUID", int]
"""Group id, topic id and partition index."""

RecordRow = tuple[str, int, int, int, int, str]
"""Records in a fact: topic, partition, first and last offset, deliveries, state."""


class LedPartitions:
    """The share partitions of a node, with their requests and timers. What they cause is added to `effects`.

    `look_again` looks at the fetches that wait for a partition, of one group; it is called with the node's time in ms.
    """

    def __init__(
        self,
        node_id: int,
        cluster: ClusterState,
        timers: Timers[DataTimerKey],
        effects: list[Effect],
        look_again: Callable[[int, PartitionKey, str], None],
    ) -> None:
        self.led: dict[LeaderKey, LedPartition] = {}
        """Those in memory."""
        self.requests = StateRequests(cluster, timers)
        self.dead_letters = DeadLetters(node_id, cluster, timers)
        self._timers = timers
        self._node_id = node_id
        self._cluster = cluster
        self._effects = effects
        self._look_again = look_again
        # by token, the fetch whose partition is loaded
        self._loading: dict[int, WaitingFetch] = {}

    # -- inputs --------------------------------------------------------------------------------------------------

    def expired(self, now: int, key: RecordLockExpiry | ShareStateRetry | DeadLetterRetry) -> None:
        """Fire a timer: the end of a lock, or another try of a request."""
        if isinstance(key, ShareStateRetry):
            self._effects.append(self.requests.send(key.token))
        elif isinstance(key, DeadLetterRetry):
            self.bury(now, self.dead_letters.retry(now, key.token))
        else:
            self._expire_locks(now, self.led[key.group_id, key.topic_id, key.partition])

    def leaders_changed(self) -> None:
        """Forget the share partitions that this node does not lead any more, as those of deleted topics."""
        for led in list(self.led.values()):
            topic = self._cluster.topics.find_id(led.topic_id)
            if topic is None or topic.leader(led.partition) != self._node_id:
                self.drop(led)

    def log_truncated(self, topic_id: UUID, partition: int) -> None:
        """Forget the share partitions of a log that another leader has without its last records."""
        for led in list(self.led.values()):
            if (led.topic_id, led.partition) == (topic_id, partition):
                self.drop(led)

    def forget(self, group_id: str | None = None) -> None:
        """Forget the share partitions of a group, or of all groups."""
        for led in list(self.led.values()):
            if group_id in (None, led.group_id):
                self.drop(led)

    def group_deadline(self, group_id: str) -> int | None:
        """Return the time of the group's clock at which the next lock of a record ends, or None."""
        states = (led.state for led in self.led.values() if led.group_id == group_id and led.state is not None)
        return min((due for state in states if (due := state.locks.deadline) is not None), default=None)

    def clock_changed(self, now: int, group_id: str) -> None:
        """Adjust the timers of locks after the group's clock was moved, or changed its mode."""
        for led in self.led.values():
            if led.group_id == group_id and led.state is not None:
                self.set_timer(now, led, led.state)

    def release(self, now: int, group_id: str, member_id: str, key: PartitionKey) -> None:
        """Release the records that a member holds in a partition, because its session is closed."""
        led = self.led.get((group_id, *key))
        if led is not None and led.state is not None:
            write = led.state.release(member_id, self._settings(group_id).limits)
            if write is not None:
                self._note(now, led, write, "session_closed")
                self.write(led, led.state, write)
            self._look_again(now, key, group_id)

    def end_locks(self, now: int, led: LedPartition, first: int, last: int, member_id: str | None) -> int:
        """End locks of records between two offsets for a test; return the number of records."""
        assert led.state is not None, f"{led} is not loaded"
        write = led.state.end_locks(first, last, member_id, self._settings(led.group_id).limits)
        self._released(now, led, led.state, write, "forced")
        return 0 if write is None else sum(each.last - each.first + 1 for each in write.batches)

    # -- loading and storing -------------------------------------------------------------------------------------

    def load(self, waiting: WaitingFetch, key: PartitionKey) -> LedPartition | Error:
        """Return a share partition; begin to load it if it is not in memory."""
        topic = self._cluster.topics.find_id(key[0])
        assert topic is not None, f"{key[0]} is unknown"
        group_id = waiting.exchange.group_id
        led = self.led.get((group_id, *key))
        if led is None:
            if topic.leaders[key[1]] != self._node_id:
                return Error.NOT_LEADER_OR_FOLLOWER
            led = self.led[group_id, *key] = LedPartition(group_id, *key, topic.epochs[key[1]])
            token, sent = self.requests.read(led)
            self._loading[token] = waiting
            self._effects.append(sent)
        return led

    def loaded(self, now: int, led: LedPartition, result: LoadedState | Refusal | None, token: int) -> None:
        """Take the state of a share partition, or drop the partition."""
        waiting, topic = self._loading.pop(token), self._cluster.topics.find_id(led.topic_id)
        log = None if topic is None else topic.log(led.partition)
        if led.is_dropped or log is None:
            return None
        error = Error.UNKNOWN_SERVER_ERROR
        if isinstance(result, LoadedState):
            start = result.start
            if start == -1:
                start = self._settings(led.group_id).start_offset(log, now)
            try:
                led.state = SharePartition(start, result.state_epoch, result.batches)
            except InvalidStateError:
                pass
            else:
                self._look_again(now, (led.topic_id, led.partition), led.group_id)
                return self._give_up(now, led, led.state.loaded_dead(self._settings(led.group_id).limits))
        else:
            assert result is not None, f"{led} was read without a state or an error"
            error = result.error
        self.drop(led)
        waiting.failed[led.topic_id, led.partition] = empty_row(led.partition, error)
        return None

    def drop(self, led: LedPartition) -> None:
        """Forget a share partition; the fetches that wait for it do so in vain."""
        led.is_dropped = True
        self._timers.cancel(_expiry(led))
        if self.led.get((led.group_id, led.topic_id, led.partition)) is led:
            del self.led[led.group_id, led.topic_id, led.partition]

    def write(self, led: LedPartition, state: SharePartition, write: StateWrite) -> int:
        """Store a change; return the token of the request."""
        token, sent = self.requests.write(led, state, write)
        self._effects.append(sent)
        return token

    def complete(self, led: LedPartition, write: StateWrite, refusal: Refusal | None) -> bool:
        """Complete a change, or take it back; return whether the start offset has moved."""
        assert led.state is not None, f"{led} was written before it was loaded"
        moved = led.state.complete(write, is_written=refusal is None)
        if refusal is not None and refusal.error in DROPS and write.changes:
            self.drop(led)
        return moved

    def completed(
        self, now: int, led: LedPartition, write: StateWrite, refusal: Refusal | None, *, moved: bool
    ) -> None:
        """Go on after a change whose acknowledgement is answered."""
        if led.is_dropped or led.state is None:
            return
        self.set_timer(now, led, led.state)
        # after expired locks, which are no changes to complete, the look came before
        if moved and (write.changes or not write.holders):
            self._look_again(now, (led.topic_id, led.partition), led.group_id)
        if refusal is None or not write.changes:
            self._give_up(now, led, write.dead)

    def _give_up(self, now: int, led: LedPartition, dead: Iterable[DeadRecords]) -> None:
        """Write dead letters; their records are archived afterwards."""
        for records in dead:
            self.bury(now, self.dead_letters.write(now, led, records))

    def bury(self, now: int, step: SendRequest | Written | None) -> None:
        """Send the next request of dead letters, or archive their records at the end."""
        if step is None:
            return
        if not isinstance(step, Written):
            self._effects.append(step)
            return
        led, dead = step.letter.target, step.letter.records
        self._effects.append(
            DeadLettersWritten(
                led.group_id,
                self.group_now(led.group_id, now),
                *(self._cluster.topics.name_of(led.topic_id) or "", led.partition),
                *(dead.first, dead.last, dead.count),
                step.letter.topic,
                dead.cause.name.lower(),
                step.problem,
            )
        )
        if led.state is not None and not led.is_dropped:
            self.write(led, led.state, led.state.bury(dead))

    # -- locks ---------------------------------------------------------------------------------------------------

    def _expire_locks(self, now: int, led: LedPartition) -> None:
        assert led.state is not None, f"{led} has a lock before it was loaded"
        write = led.state.expire(self.group_now(led.group_id, now), self._settings(led.group_id).limits)
        self._released(now, led, led.state, write, "lock_expired")

    def _released(
        self, now: int, led: LedPartition, state: SharePartition, write: StateWrite | None, cause: str
    ) -> None:
        """Store the end of locks, and look at the fetches that wait for the records."""
        self.set_timer(now, led, state)
        if write is not None:
            self._note(now, led, write, cause)
            self.write(led, state, write)
            self._look_again(now, (led.topic_id, led.partition), led.group_id)

    def _note(self, now: int, led: LedPartition, write: StateWrite, cause: str) -> None:
        """Emit the end of locks, by the members that held the records."""
        rows: dict[str, list[RecordRow]] = {}
        for member_id, each in zip(write.holders, write.batches, strict=True):
            rows.setdefault(member_id, []).append(self._row(led, each))
        group_now = self.group_now(led.group_id, now)
        self._effects += [
            LocksEnded(led.group_id, group_now, member_id, tuple(records), cause) for member_id, records in rows.items()
        ]

    def note_archived(self, now: int, led: LedPartition, write: StateWrite, member_id: str) -> None:
        """Emit the records that a member has released after their last delivery."""
        if write.given_up:
            rows = tuple(self._row(led, each) for each in write.given_up)
            group_now = self.group_now(led.group_id, now)
            self._effects.append(RecordsArchived(led.group_id, group_now, member_id, rows))

    def _row(self, led: LedPartition, batch: StateBatch) -> RecordRow:
        topic = self._cluster.topics.name_of(led.topic_id) or ""
        return topic, led.partition, batch.first, batch.last, batch.count, RecordState(batch.state).name.lower()

    def _settings(self, group_id: str) -> ShareSettings:
        return ShareSettings(self._cluster, group_id)

    def group_now(self, group_id: str, now: int) -> int:
        """Return the time of a group: its locks are those of its own clock."""
        return self._cluster.clocks.of(group_id, now).read(now)

    def set_timer(self, now: int, led: LedPartition, state: SharePartition) -> None:
        """Set the timer of the first lock that ends, or none."""
        deadline, key = state.locks.deadline, _expiry(led)
        due = None if deadline is None else self._cluster.clocks.of(led.group_id, now).due_at(deadline, now)
        if due is None:
            self._timers.cancel(key)
        elif due != self._timers.get(key):
            self._timers.set(key, due)


def _expiry(led: LedPartition) -> RecordLockExpiry:
    return RecordLockExpiry(led.group_id, led.topic_id, led.partition)
