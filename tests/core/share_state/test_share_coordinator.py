"""The share coordinator: InitializeShareGroupState, Read…, Write…, Delete…, …Summary, and `__share_group_state`.

A test named after a scenario, such as h107, plays it as it was seen on a broker of release 4.3.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from scenes.planted_bugs import planted
from scenes.share_play import SharePlay

from koordinator.emulator.core.effects import AppendShareState, Call, Reply
from koordinator.emulator.core.share_state.coordinator import ShareCoordinator
from koordinator.emulator.core.share_state.state import StateKey
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import delete_share_group_state as delete_wire
from koordinator.wire.messages import initialize_share_group_state as initialize_wire
from koordinator.wire.messages import read_share_group_state as read_wire
from koordinator.wire.messages import read_share_group_state_summary as summary_wire
from koordinator.wire.messages import write_share_group_state as write_wire
from koordinator.wire.messages.share_state_records import ShareSnapshotValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from koordinator.emulator.core.effects import Effect

FENCED = {
    "4.3": "The share coordinator rejected the request because the share-group state epoch did not match.",
    "4.4": "The coordinator rejected the request because the state epoch did not match.",
}

LATEST = 1 << 20
"""An epoch that is not older than any other."""

Rows = list[tuple[int, int, int, int]]
"""First and last offset, state and deliveries of batches."""


class StatePlay(SharePlay):
    """A share coordinator that is asked about partitions of t in group g."""

    _started = 0

    def topic_id(self, name: str) -> UUID:
        """Return the id of a topic; an unknown one for another name."""
        topic = self.cluster.topics.get(name)
        return UUID(int=7) if topic is None else topic.topic_id

    def initialize(self, state_epoch: int, start: int, partition: int = 0, topic: str = "t") -> tuple[int, str | None]:
        data = initialize_wire.PartitionData(partition=partition, state_epoch=state_epoch, start_offset=start)
        rows = (initialize_wire.InitializeStateData(topic_id=self.topic_id(topic), partitions=(data,)),)
        return self._result(initialize_wire.InitializeShareGroupStateRequest(group_id="g", topics=rows))

    def write(self, rows: Rows, start: int = -1, **fields: int) -> tuple[int, str | None]:
        return self._result(self._writing(rows, start, **fields), 1)

    def start_write(self, rows: Rows, start: int = -1) -> int:
        """Begin a write, which stays in flight until `end_write`; return its token."""
        self._started += 1
        call = Call(0, self._started, ApiKey.WRITE_SHARE_GROUP_STATE, 1, "broker", "/127.0.0.1")
        (append,) = self.shares.handle(self.now, call, self._writing(rows, start))
        assert isinstance(append, AppendShareState)
        return append.token

    def end_write(self, token: int, error: Error = Error.NONE) -> dict[int, Error]:
        """Complete a write; return the errors of the answers by the number of their write."""
        return self.answers(self.shares.appended(self.now, token, error))

    @staticmethod
    def answers(effects: list[Effect]) -> dict[int, Error]:
        """Return the errors of answers to writes, by the number of the write."""
        found = {}
        for effect in effects:
            assert isinstance(effect, Reply)
            response: Any = effect.response
            found[effect.call.correlation_id] = Error(response.results[0].partitions[0].error_code)
        return found

    def _writing(
        self, rows: Rows, start: int, *, state_epoch: int = LATEST, leader_epoch: int = LATEST, completed: int = -1
    ) -> write_wire.WriteShareGroupStateRequest:
        data = write_wire.PartitionData(
            partition=0,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=completed,
            state_batches=tuple(
                write_wire.StateBatch(first_offset=a, last_offset=b, delivery_state=s, delivery_count=n)
                for a, b, s, n in rows
            ),
        )
        topics = (write_wire.WriteStateData(topic_id=self.topic_id("t"), partitions=(data,)),)
        return write_wire.WriteShareGroupStateRequest(group_id="g", topics=topics)

    def read(self, leader_epoch: int = 0) -> Any:
        """Return (state epoch, start offset, batches), or (error, text)."""
        data = read_wire.PartitionData(partition=0, leader_epoch=leader_epoch)
        topics = (read_wire.ReadStateData(topic_id=self.topic_id("t"), partitions=(data,)),)
        row = self._row(read_wire.ReadShareGroupStateRequest(group_id="g", topics=topics))
        if row.error_code:
            return Error(row.error_code), row.error_message
        batches = [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in row.state_batches]
        return row.state_epoch, row.start_offset, batches

    def summary(self) -> tuple[int, int, int, int, int]:
        """Return error, state epoch, leader epoch, start offset and completed deliveries."""
        topics = (
            summary_wire.ReadStateSummaryData(
                topic_id=self.topic_id("t"), partitions=(summary_wire.PartitionData(partition=0, leader_epoch=0),)
            ),
        )
        row = self._row(summary_wire.ReadShareGroupStateSummaryRequest(group_id="g", topics=topics), 1)
        return row.error_code, row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count

    def delete(self) -> tuple[int, str | None]:
        topics = (
            delete_wire.DeleteStateData(
                topic_id=self.topic_id("t"), partitions=(delete_wire.PartitionData(partition=0),)
            ),
        )
        return self._result(delete_wire.DeleteShareGroupStateRequest(group_id="g", topics=topics))

    def _row(self, request: Any, version: int = 0) -> Any:
        return self.ask_shares(request, version).results[0].partitions[0]

    def _result(self, request: Any, version: int = 0) -> tuple[int, str | None]:
        row = self._row(request, version)
        return Error(row.error_code), row.error_message

    def kinds(self) -> list[tuple[str, int]]:
        """Return S or U for each record, a minus for a tombstone, with its snapshot epoch."""
        found = []
        for append in self.state_records:
            kind = "S" if isinstance(append.record, ShareSnapshotValue) else "U"
            found.append(("-", 0) if append.record is None else (kind, append.record.snapshot_epoch))
        return found


@pytest.fixture
def play() -> StatePlay:
    """Return a share coordinator without states."""
    return StatePlay()


OK = (Error.NONE, None)


@pytest.mark.parametrize("release", FENCED)
def test_h107_a_lower_state_epoch_is_fenced(release: str) -> None:
    play = StatePlay(kafka_version=release)
    assert play.initialize(5, -1) == OK
    assert play.initialize(4, 3) == (Error.FENCED_STATE_EPOCH, FENCED[release])
    assert play.initialize(5, 7) == OK
    assert play.read() == (5, 7, [])
    assert play.initialize(6, 0) == OK
    assert play.write([], state_epoch=5) == (Error.FENCED_STATE_EPOCH, FENCED[release])


def test_h107_before_4_4_epochs_may_be_negative() -> None:
    play = StatePlay(kafka_version="4.3")
    play.initialize(5, -1)
    assert play.initialize(-1, 8) == OK
    assert play.read(-1) == (-1, 8, [])
    assert play.write([], leader_epoch=-1, state_epoch=-1) == OK


def test_h216_since_4_4_epochs_may_not_be_negative(play: StatePlay) -> None:
    text = "The {} epoch cannot be a negative number."
    leader, state = ((Error.INVALID_REQUEST, text.format(which)) for which in ("leader", "state"))
    assert play.initialize(-1, 0) == state
    assert [play.write([], leader_epoch=-1, state_epoch=-1), play.read(-1)] == [leader] * 2
    assert play.write([], state_epoch=-1) == state


@pytest.mark.parametrize(("release", "after"), [("4.3", (4, 9)), ("4.4", (5, 3))])
def test_h218_since_4_4_a_write_leaves_no_lower_offset_and_no_lower_number(
    release: str, after: tuple[int, int]
) -> None:
    play = StatePlay(kafka_version=release)
    play.initialize(1, 5)
    for start, completed in ((5, 3), (5, 2), (4, 9)):
        assert play.write([(0, 9, 2, 1)], start, completed=completed) == OK
    assert play.summary()[3:] == after
    assert play.write([(0, 9, 2, 1)], 7, completed=1) == OK
    assert play.summary()[3:] == (7, 1)


@pytest.mark.parametrize(("release", "error"), [("4.3", Error.NONE), ("4.4", Error.UNKNOWN_SERVER_ERROR)])
def test_h217_an_empty_batch_is_stored_and_since_4_4_refused_beside_others(release: str, error: Error) -> None:
    play = StatePlay(kafka_version=release)
    play.initialize(1, 0)
    assert play.write([(5, 4, 2, 1)]) == OK
    assert play.write([(7, 9, 0, 1)])[0] == error


def test_h108_a_read_notes_the_leader_epoch_and_a_write_does_not(play: StatePlay) -> None:
    play.initialize(6, 0)
    batches = [(0, 4, 2, 1), (5, 9, 0, 2)]
    assert play.write(batches, 0, leader_epoch=3) == OK
    assert play.write([], leader_epoch=2) == OK
    assert play.read(7) == (6, 0, batches)
    assert play.summary()[2] == 7
    text = "The leader epoch in the request is older than the epoch on the broker."
    assert play.write([], leader_epoch=3) == (Error.FENCED_LEADER_EPOCH, text)
    assert play.read(3) == (Error.FENCED_LEADER_EPOCH, text)


def test_a_topic_that_is_given_twice_has_one_row(play: StatePlay) -> None:
    assert play.initialize(1, 5) == OK
    data = read_wire.PartitionData(partition=0, leader_epoch=0)
    topic = read_wire.ReadStateData(topic_id=play.topic_id("t"), partitions=(data, data))
    answer = play.ask_shares(read_wire.ReadShareGroupStateRequest(group_id="g", topics=(topic, topic)), 0)
    assert [[row.start_offset for row in each.partitions] for each in answer.results] == [[5]]


def test_h110_deletion_forgets_the_epochs(play: StatePlay) -> None:
    assert play.initialize(1, 0, partition=5) == (
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        "This server does not host this topic-partition.",
    )
    assert play.initialize(1, 0, partition=-1) == (
        Error.INVALID_REQUEST,
        "The partition id cannot be a negative number.",
    )
    assert play.initialize(1, 0, topic="nope")[0] == Error.UNKNOWN_TOPIC_OR_PARTITION
    play.initialize(9, 0)
    assert play.delete() == OK
    assert play.summary() == (0, 0, 0, -1, -1)
    assert play.delete() == OK
    assert play.initialize(1, 0) == OK
    assert [kind for kind, _ in play.kinds()] == ["S", "-", "S"]


def test_a_state_that_nobody_has_begun_is_neither_read_nor_written(play: StatePlay) -> None:
    text = "{} operation on uninitialized share partition not allowed."
    assert play.read() == (Error.INVALID_REQUEST, text.format("Read"))
    assert play.write([]) == (Error.INVALID_REQUEST, text.format("Write"))


def test_h096_every_third_record_is_a_snapshot_after_two_updates() -> None:
    play = StatePlay(share_coordinator_snapshot_update_records_per_snapshot=2)
    play.initialize(1, 0)
    for offset in range(6):
        play.write([(offset, offset, 2, 1)], 0)
    assert play.kinds() == [("S", 0), ("U", 0), ("U", 0), ("S", 1), ("U", 1), ("U", 1), ("S", 2)]
    assert play.read() == (1, 0, [(0, 5, 2, 1)])


def test_h213_a_snapshot_that_was_not_due_does_not_put_the_next_one_off() -> None:
    play = StatePlay(share_coordinator_snapshot_update_records_per_snapshot=2)
    play.initialize(1, 0)
    play.write([], 0)
    play.initialize(1, 5)
    for _ in range(4):
        play.write([], 5)
    assert play.kinds() == [("S", 0), ("U", 0), ("S", 1), ("U", 1), ("S", 2), ("U", 2), ("U", 2)]


def test_a_failed_write_is_taken_back(play: StatePlay) -> None:
    play.initialize(1, 0)
    play.state = Error.KAFKA_STORAGE_ERROR
    text = "Unable to write share group state: Disk error when trying to access log file on disk."
    assert play.write([(0, 4, 2, 1)], 0) == (Error.NOT_COORDINATOR, text)
    play.state = Error.NONE
    assert play.read() == (1, 0, [])


def test_a_failed_write_takes_the_later_ones_of_its_partition_with_it(play: StatePlay) -> None:
    play.initialize(1, 0)
    first, second, third = (play.start_write([(at, at, 2, 1)], 0) for at in range(3))
    assert play.end_write(first) == {1: Error.NONE}
    assert play.end_write(second, Error.KAFKA_STORAGE_ERROR) == {2: Error.NOT_COORDINATOR, 3: Error.NOT_COORDINATOR}
    assert play.read() == (1, 0, [(0, 0, 2, 1)])
    # the log completes it, too
    assert play.end_write(third) == {}
    assert play.read() == (1, 0, [(0, 0, 2, 1)])


def test_writes_in_flight_fail_with_their_coordinator(play: StatePlay) -> None:
    play.initialize(1, 0)
    first, second = (play.start_write([(at, at, 2, 1)], 0) for at in range(2))
    partition = play.shares.store.partition_of(StateKey("g", play.topic_id("t"), 0))
    assert play.answers(play.shares.unload(play.now, partition - 1)) == {}
    failed = play.answers(play.shares.unload(play.now, partition))
    assert failed == {1: Error.NOT_COORDINATOR, 2: Error.NOT_COORDINATOR}
    assert [play.end_write(token) for token in (first, second)] == [{}, {}]


def test_a_loaded_coordinator_has_the_states_of_its_records(play: StatePlay) -> None:
    play.initialize(3, 2)
    play.write([(2, 4, 2, 1)], 2, completed=3)
    before = play.summary(), play.read()
    partition = play.shares.store.partition_of(StateKey("g", play.topic_id("t"), 0))
    play.shares.unload(play.now, partition)
    text = "Unable to read share group state: This is not the correct coordinator."
    assert play.read() == (Error.NOT_COORDINATOR, text)
    play.shares.begin_load(play.now, partition)
    assert play.read()[0] == Error.COORDINATOR_LOAD_IN_PROGRESS
    play.shares.loaded(play.now, partition, [(each.key, each.record) for each in play.state_records])
    assert (play.summary(), play.read()) == before


def test_an_update_without_a_snapshot_before_it_counts_for_nothing(play: StatePlay) -> None:
    play.initialize(3, 2)
    play.write([(2, 4, 2, 1)], 2)
    snapshot, update = ((each.key, each.record) for each in play.state_records)
    partition = play.shares.store.partition_of(StateKey("g", play.topic_id("t"), 0))
    play.shares.unload(play.now, partition)
    play.shares.begin_load(play.now, partition)
    play.shares.loaded(play.now, partition, [update])
    assert play.read() == (Error.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed.")
    play.shares.loaded(play.now, partition, [update, snapshot])
    assert play.read() == (3, 2, [])


def test_records_that_cannot_be_merged_are_not_loaded() -> None:
    older = StatePlay(kafka_version="4.3")
    older.initialize(3, 0)
    assert [older.write(rows) for rows in ([(5, 4, 2, 1)], [(7, 9, 0, 1)])] == [(Error.NONE, None)] * 2
    play = StatePlay()
    partition = play.shares.store.partition_of(StateKey("g", play.topic_id("t"), 0))
    place = play.topic_id("t")
    records = [(replace(each.key, topic_id=place), each.record) for each in older.state_records]
    play.shares.begin_load(play.now, partition)
    play.shares.loaded(play.now, partition, records)
    assert play.read()[0] == Error.NOT_COORDINATOR
    assert StateKey("g", place, 0) not in play.shares.store.states


def test_a_deleted_topic_leaves_a_tombstone(play: StatePlay) -> None:
    play.initialize(1, 0)
    play.cluster.delete_topic(play.cluster.topics["t"])
    (append,) = play.shares.topics_deleted(play.now)
    assert getattr(append, "record", 0) is None


@pytest.mark.parametrize(("group", "topics"), [("", 1), ("g", 0)])
def test_a_request_without_group_or_topics_has_no_results(play: StatePlay, group: str, topics: int) -> None:
    row = summary_wire.ReadStateSummaryData(
        topic_id=play.topic_id("t"), partitions=(summary_wire.PartitionData(partition=0, leader_epoch=0),)
    )
    asked: Sequence[Any] = (row,) * topics
    request = summary_wire.ReadShareGroupStateSummaryRequest(group_id=group, topics=tuple(asked))
    assert play.ask_shares(request, 1).results == ()


@pytest.mark.parametrize(
    "attempt",
    [
        lambda play: play.initialize(2, 7),
        lambda play: play.write([(3, 5, 2, 1)], start=3),
        lambda play: play.read(9),
        StatePlay.delete,
    ],
    ids=["initialize", "write", "read", "delete"],
)
def test_after_a_bug_at_any_moment_a_share_partition_is_as_before(attempt: Callable[[StatePlay], object]) -> None:
    def with_state() -> StatePlay:
        play = StatePlay()
        assert play.initialize(1, 0) == OK
        assert play.write([(0, 9, 0, 1)]) == OK
        return play

    expected = with_state()
    for moment, play in planted(with_state, attempt, 20, ShareCoordinator.handle):
        assert play.shares.store.states == expected.shares.store.states, moment
        assert play.summary() == expected.summary(), moment
        assert play.kinds() == expected.kinds(), moment
