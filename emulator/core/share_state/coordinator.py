"""The share coordinator of one node: requests of brokers about share partitions, and completed writes in, effects out.

It owns partitions of `__share_group_state`. Several partitions in one request are separate operations: the first
problem of each is its result. Kafka: `ShareCoordinatorService`, `ShareCoordinatorShard`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import delete_share_group_state as delete_wire
from koordinator.wire.messages import initialize_share_group_state as initialize_wire
from koordinator.wire.messages import read_share_group_state as read_wire
from koordinator.wire.messages import read_share_group_state_summary as summary_wire
from koordinator.wire.messages import write_share_group_state as write_wire
from koordinator.wire.messages.share_state_records import ShareUpdateValue
from koordinator.wire.schema import fields_of

from ..effects import Failed
from ..journal import Journal
from ..write_errors import new_write_error
from .batches import UNKNOWN, StoredBatch, UnopenedBatch
from .state import ShareState, StateKey, rows
from .store import ShareStateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.share_state_records import Key, Value

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..dialect import Dialect
    from ..effects import Call, Effect

    Answered = Callable[[Any], None]
    """Takes the row of a partition."""

NO_EPOCH = -1
"""An epoch that is not checked, in releases that do not refuse it."""

TEXTS: Mapping[Error, str] = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    Error.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    Error.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    Error.NOT_COORDINATOR: "This is not the correct coordinator.",
    Error.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
    Error.NOT_ENOUGH_REPLICAS: "Messages are rejected since there are fewer in-sync replicas than required.",
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        "Messages are written to the log, but to fewer in-sync replicas than required."
    ),
    Error.REQUEST_TIMED_OUT: "The request timed out.",
    Error.KAFKA_STORAGE_ERROR: "Disk error when trying to access log file on disk.",
    Error.MESSAGE_TOO_LARGE: "The request included a message larger than the max message size the server will accept.",
}
"""Kafka's texts of the errors in the rows (`Errors`)."""

OPERATIONS: Mapping[int, str] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "initialize share group state",
    ApiKey.READ_SHARE_GROUP_STATE: "read share group state",
    ApiKey.WRITE_SHARE_GROUP_STATE: "write share group state",
    ApiKey.DELETE_SHARE_GROUP_STATE: "delete share group state",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "read share group state summary",
}
"""What cannot be done where there is no coordinator, or no write (`ShareCoordinatorService`)."""

TOPIC_RESULTS: Mapping[int, Any] = {key: fields_of(APIS[key].response)["results"].type for key in OPERATIONS}
PARTITION_RESULTS: Mapping[int, Any] = {key: fields_of(row)["partitions"].type for key, row in TOPIC_RESULTS.items()}
"""The rows of each response, and the rows in these."""

NEGATIVE = "The {} cannot be a negative number."
NOT_COUNTED = (
    'Unable to write share group state: Cannot invoke "java.lang.Integer.intValue()" because the return value of '
    '"java.util.TreeMap.get(Object)" is null'
)
NOT_INITIALIZED = "{} operation on uninitialized share partition not allowed."


def fenced_state(dialect: Dialect) -> str:
    """Return Kafka's text of FENCED_STATE_EPOCH."""
    group, state = ("share ", "share-group state") if dialect.fenced_state_names_its_group else ("", "state")
    return f"The {group}coordinator rejected the request because the {state} epoch did not match."


class _RefusedRow(Exception):
    """Why a partition gets an error."""

    def __init__(self, error: Error, message: str | None = None) -> None:
        super().__init__()
        self.fields = {"error_code": error, "error_message": message or TEXTS.get(error)}


class ShareCoordinator:
    """The share partitions of one node."""

    def __init__(self, cluster: ClusterState, settings: Settings) -> None:
        self.store = ShareStateStore(cluster, settings)
        self._operations: dict[int, Callable[[int, StateKey, Any, Answered], None]] = {
            ApiKey.INITIALIZE_SHARE_GROUP_STATE: self._initialize,
            ApiKey.READ_SHARE_GROUP_STATE: self._read,
            ApiKey.WRITE_SHARE_GROUP_STATE: self._update,
            ApiKey.DELETE_SHARE_GROUP_STATE: self._delete,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: self._summarize,
        }
        self.serves = frozenset(self._operations)

    def handle(self, now: int, call: Call, request: Any) -> list[Effect]:  # noqa: ANN401 - one of five messages
        """Serve a request; it is answered when all of its partitions are."""
        response: Any = APIS[call.api_key].response
        topic_result, partition_result = TOPIC_RESULTS[call.api_key], PARTITION_RESULTS[call.api_key]
        topics = request.topics if request.group_id else ()
        results: list[list[Any]] = [[None] * len(topic.partitions) for topic in topics]
        waiting, newest = sum(map(len, results)), self.store.newest_write

        def answer() -> None:
            # of a topic or a partition that is given twice there is one row, the last (`ShareCoordinatorService`)
            found: dict[UUID, dict[int, Any]] = {}
            for topic, each in zip(topics, results, strict=True):
                for row in each:
                    found.setdefault(topic.topic_id, {})[row.partition] = row
            made = tuple(
                topic_result(topic_id=topic_id, partitions=tuple(by_number.values()))
                for topic_id, by_number in found.items()
            )
            self.store.reply(call, response(results=made))

        def answered(topic: int, at: int, row: Any) -> None:  # noqa: ANN401
            nonlocal waiting
            results[topic][at] = row
            waiting -= 1
            if not waiting:
                answer()

        if not waiting:
            answer()
        for index, topic in enumerate(topics):
            for at, row in enumerate(topic.partitions):
                key = StateKey(request.group_id, topic.topic_id, row.partition)

                def done(found: Any, index: int = index, at: int = at) -> None:  # noqa: ANN401
                    answered(index, at, found)

                try:
                    self._check(key, call.api_key)
                    self._operations[call.api_key](now, key, row, done)
                except _RefusedRow as refused:
                    done(partition_result(partition=row.partition, **refused.fields))
                except Exception as error:  # noqa: BLE001 - a bug ends one request
                    self.store.take_back(newest)
                    self.store.emit(Failed(error, (call,)))
                    return self.store.drain()
        return self.store.drain()

    def _check(self, key: StateKey, api_key: int) -> None:
        """Raise _RefusedRow if this node does not serve a share partition."""
        if key.partition < 0:
            raise _RefusedRow(Error.INVALID_REQUEST, NEGATIVE.format("partition id"))
        status = self.store.status(key)
        if status is not Error.NONE:
            raise _RefusedRow(status, _unable(api_key, status))

    def _check_epochs(self, **epochs: int) -> None:
        """Raise _RefusedRow for a negative epoch, in releases that do not accept it."""
        for name, epoch in epochs.items():
            if epoch < 0 and self._dialect.state_epochs_are_checked:
                raise _RefusedRow(Error.INVALID_REQUEST, NEGATIVE.format(name.replace("_", " ")))

    def _fenced(self) -> _RefusedRow:
        return _RefusedRow(Error.FENCED_STATE_EPOCH, fenced_state(self._dialect))

    @property
    def _dialect(self) -> Dialect:
        return self.store.cluster.features.dialect

    def _check_exists(self, key: StateKey) -> None:
        topic = self.store.cluster.topics.by_id.get(key.topic_id)
        if topic is None or topic.log(key.partition) is None:
            raise _RefusedRow(Error.UNKNOWN_TOPIC_OR_PARTITION)

    def _initialized(self, key: StateKey, operation: str) -> ShareState:
        state = self.store.states.get(key)
        if state is None:
            raise _RefusedRow(Error.INVALID_REQUEST, NOT_INITIALIZED.format(operation))
        return state

    def _initialize(self, now: int, key: StateKey, row: initialize_wire.PartitionData, answered: Answered) -> None:
        """Begin a state, or begin anew with another start offset; all batches are forgotten."""
        self._check_epochs(state_epoch=row.state_epoch)
        before = self.store.states.get(key)
        if before is not None and row.state_epoch != NO_EPOCH and row.state_epoch < before.state_epoch:
            raise self._fenced()
        self._check_exists(key)
        state = ShareState(
            snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
            state_epoch=row.state_epoch,
            leader_epoch=0,
            start_offset=row.start_offset,
            delivery_complete_count=UNKNOWN if row.start_offset == UNKNOWN else 0,
            created_ms=now,
        )
        done = _answer_of(ApiKey.INITIALIZE_SHARE_GROUP_STATE, key, answered)
        self.store.write_snapshot(now, key, state, done)

    def _update(self, now: int, key: StateKey, row: write_wire.PartitionData, answered: Answered) -> None:
        """Write what the leader of a partition has decided; a snapshot in the place of every n-th update."""
        self._check_epochs(leader_epoch=row.leader_epoch, state_epoch=row.state_epoch)
        state = self._initialized(key, "Write")
        if row.leader_epoch != NO_EPOCH and row.leader_epoch < state.leader_epoch:
            raise _RefusedRow(Error.FENCED_LEADER_EPOCH)
        if row.state_epoch != NO_EPOCH and row.state_epoch < state.state_epoch:
            raise self._fenced()
        self._check_exists(key)
        start, done = row.start_offset, row.delivery_complete_count
        if self._dialect.share_writes_go_forward and start <= state.start_offset:
            done = max(done if start == state.start_offset else UNKNOWN, state.delivery_complete_count)
            start = state.start_offset
        batches = [StoredBatch.of(each) for each in row.state_batches]
        try:
            update = ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=start,
                delivery_complete_count=done,
                state_batches=rows(self.store.combine(batches, start)),
            )
            self._write(now, key, update, _answer_of(ApiKey.WRITE_SHARE_GROUP_STATE, key, answered))
        except UnopenedBatch as error:
            raise _RefusedRow(Error.UNKNOWN_SERVER_ERROR, NOT_COUNTED) from error

    def _write(self, now: int, key: StateKey, update: ShareUpdateValue, answered: Callable[[Error], None]) -> None:
        state = self.store.states[key]
        if state.updates < self.store.settings.share_coordinator_snapshot_update_records_per_snapshot:
            return self.store.write_update(key, update, answered)
        merged = replace(
            state.updated(update, self.store.combine),
            snapshot_epoch=state.snapshot_epoch + 1,
            created_ms=now,
        )
        return self.store.write_snapshot(now, key, merged, answered)

    def _read(self, now: int, key: StateKey, row: read_wire.PartitionData, answered: Answered) -> None:
        """Return a state to the leader of its partition, whose epoch is noted."""
        self._check_epochs(leader_epoch=row.leader_epoch)
        state = self._initialized(key, "Read")
        is_known = row.leader_epoch != NO_EPOCH or not self._dialect.reads_without_leader_epoch
        if is_known and row.leader_epoch < state.leader_epoch:
            raise _RefusedRow(Error.FENCED_LEADER_EPOCH)
        self._check_exists(key)
        found = read_wire.PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=rows(state.batches),
        )
        if row.leader_epoch in (NO_EPOCH, state.leader_epoch):
            return answered(found)
        update = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=row.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        failed = _answer_of(ApiKey.READ_SHARE_GROUP_STATE, key, answered)
        return self._write(now, key, update, lambda error: answered(found) if error is Error.NONE else failed(error))

    def _summarize(self, _now: int, key: StateKey, _row: summary_wire.PartitionData, answered: Answered) -> None:
        """Return the offsets of a state to a group coordinator; one that nobody has begun is no error."""
        self._check_exists(key)
        state = self.store.states.get(key) or ShareState(0, 0, 0, UNKNOWN)
        answered(
            summary_wire.PartitionResult(
                partition=key.partition,
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
            )
        )

    def _delete(self, _now: int, key: StateKey, _row: delete_wire.PartitionData, answered: Answered) -> None:
        """Forget a state, with its epochs."""
        self._check_exists(key)
        done = _answer_of(ApiKey.DELETE_SHARE_GROUP_STATE, key, answered)
        if key in self.store.states:
            self.store.write_tombstone(key, done)
        else:
            done(Error.NONE)

    def topics_deleted(self, _now: int) -> list[Effect]:
        """Forget the states of partitions whose topic does not exist any more."""
        topics = self.store.cluster.topics.by_id
        for key in [key for key in self.store.states if key.topic_id not in topics]:
            self.store.write_tombstone(key, lambda _error: None)
        return self.store.drain()

    def appended(self, _now: int, token: int, error: Error) -> list[Effect]:
        """Complete the write with this token, successfully (NONE) or not, and answer the request that waited for it."""
        self.store.appended(token, error)
        return self.store.drain()

    def begin_load(self, _now: int, partition: int) -> list[Effect]:
        """Take over a partition of `__share_group_state`; its share partitions answer "loading" until `loaded`."""
        self.store.owned.add(partition)
        self.store.loading.add(partition)
        return self.store.drain()

    def loaded(self, now: int, partition: int, records: Iterable[tuple[Key, Value | None]]) -> list[Effect]:
        """Load the records of a partition, oldest first."""
        journal = Journal()
        self.store.loading.discard(partition)
        try:
            for key, record in records:
                self.store.replay(key, record, journal)
        except UnopenedBatch:
            # records of a release whose coordinator merges otherwise
            journal.revert()
            return self.load_failed(now, partition)
        return self.store.drain()

    def load_failed(self, _now: int, partition: int) -> list[Effect]:
        """Give up loading a partition whose records cannot be read."""
        self.store.loading.discard(partition)
        self.store.owned.discard(partition)
        return self.store.drain()

    def unload(self, _now: int, partition: int) -> list[Effect]:
        """Give up a partition to another coordinator; requests that wait for a write fail with NOT_COORDINATOR."""
        store = self.store
        store.owned.discard(partition)
        store.loading.discard(partition)
        for token in [token for token, write in store.writes.items() if store.partition_of(write.key) == partition]:
            store.appended(token, Error.NOT_COORDINATOR)
        for key in [key for key in store.states if store.partition_of(key) == partition]:
            Journal().pop(store.states, key)
        return store.drain()


def _answer_of(api_key: int, key: StateKey, answered: Answered) -> Callable[[Error], None]:
    """Return what answers with the result of a write."""

    def done(error: Error) -> None:
        text = None if error is Error.NONE else _unable(api_key, error)
        row = PARTITION_RESULTS[api_key]
        answered(row(partition=key.partition, error_code=new_write_error(error), error_message=text))

    return done


def _unable(api_key: int, error: Error) -> str:
    """Return Kafka's text of a failed operation."""
    return f"Unable to {OPERATIONS[api_key]}: {TEXTS.get(error, error.name)}"
