"""TxnOffsetCommit and pending offsets (KIP-98, KIP-447, KIP-890)."""

from __future__ import annotations

import pytest
from scenes.play import Play

from koordinator.emulator.core.effects import Append
from koordinator.emulator.core.groups.records import CoordinatorRecord, TransactionEnd
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import OffsetCommitKey, OffsetCommitValue
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

A, B = ("t", 0), ("t", 1)
P, Q = 7, 8
UNSTABLE = (-1, -1, "", int(Error.UNSTABLE_OFFSET_COMMIT))
NONE = (-1, -1, "", 0)


def record(producer_id: int | None, offset: int) -> CoordinatorRecord:
    """Return the record of an offset of partition A; of an ordinary commit without a producer id."""
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    return CoordinatorRecord(
        key, OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0), producer_id=producer_id
    )


def load(play: Play, *records: CoordinatorRecord | TransactionEnd) -> None:
    """Let the coordinator load the group's partition."""
    partition = play.coordinator.store.partition_of("g")
    play._perform(play.coordinator.unload(play.now, partition))
    play._perform(play.coordinator.begin_load(play.now, partition))
    play._perform(play.coordinator.loaded(play.now, partition, records))


@pytest.fixture(params=["4.4", "3.9 new", "3.9"])
def each(request: pytest.FixtureRequest) -> Play:
    """Return a coordinator of three kinds: the newest, and both of 3.9."""
    release, *new = request.param.split()
    return Play(kafka_version=release, **({"group_coordinator_new_enable": True} if new else {}))


def test_a_pending_offset_is_invisible_until_its_transaction_commits(each: Play) -> None:
    assert each.txn_errors({A: 9}) == [Error.NONE]
    assert each.state() == "Empty"
    assert each.fetch(A, B) == {A: NONE, B: NONE}
    assert each.fetch(A, B, stable=True) == {A: UNSTABLE, B: NONE}
    assert each.fetch(stable=True) == {}
    each.end_transaction(P, commit=True)
    assert each.fetch(A, stable=True) == {A: (9, -1, "", 0)}


def test_an_aborted_offset_leaves_the_old_value(each: Play) -> None:
    each.commit_errors(offsets={A: 5})
    each.txn_errors({A: 9})
    assert each.fetch(A, stable=True) == {A: UNSTABLE}
    assert each.fetch(stable=True) == {A: UNSTABLE}
    assert each.offset(*A) == 5
    each.end_transaction(P, commit=False)
    assert each.fetch(A, stable=True) == {A: (5, -1, "", 0)}


def test_a_later_commit_of_the_same_producer_replaces_an_earlier_one(each: Play) -> None:
    each.txn_errors({A: 40})
    each.txn_errors({A: 41, B: 1})
    each.end_transaction(P, commit=True)
    assert [each.offset(*A), each.offset(*B)] == [41, 1]


def test_of_two_producers_the_later_record_wins_whichever_marker_comes_first(each: Play) -> None:
    each.txn_errors({A: 20}, producer_id=P)
    each.txn_errors({A: 30}, producer_id=Q)
    each.end_transaction(Q, commit=True)
    assert each.fetch(A, stable=True) == {A: UNSTABLE}
    assert each.offset(*A) == 30
    each.end_transaction(P, commit=True)
    assert each.fetch(A, stable=True) == {A: (30, -1, "", 0)}


def test_an_ordinary_commit_made_after_a_pending_one_wins(each: Play) -> None:
    each.txn_errors({A: 20})
    each.commit_errors(offsets={A: 50})
    each.end_transaction(P, commit=True)
    assert each.offset(*A) == 50


def test_a_marker_of_a_producer_without_pending_offsets_is_ignored(each: Play) -> None:
    each.txn_errors({A: 20})
    each.end_transaction(Q, commit=True)
    assert each.fetch(A, stable=True) == {A: UNSTABLE}


@pytest.mark.parametrize(
    ("verified", "v3", "v4"),
    [
        (Error.TRANSACTION_ABORTABLE, Error.INVALID_TXN_STATE, Error.TRANSACTION_ABORTABLE),
        (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_EPOCH),
        (Error.INVALID_PRODUCER_ID_MAPPING,) * 3,
        (Error.CONCURRENT_TRANSACTIONS,) * 3,
        (Error.NOT_COORDINATOR,) * 3,
    ],
)
def test_the_transaction_is_checked_before_the_member(each: Play, verified: Error, v3: Error, v4: Error) -> None:
    each.verified = verified
    assert each.txn_errors({A: 9}, 1, "ghost") == [v3]
    assert each.txn_errors({A: 9}, 1, "ghost", version=4) == [v4]


def test_a_failed_commit_leaves_a_group_behind_with_the_old_coordinator_only() -> None:
    for release, states in (("3.9", ["g"]), ("4.4", [])):
        play = Play(kafka_version=release)
        play.verified = Error.PRODUCER_FENCED
        play.txn_errors({A: 9})
        assert play.listed() == states


def test_unknown_partitions_and_long_metadata_are_refused_alone(each: Play) -> None:
    assert each.txn_errors({("nosuch", 0): 1, A: 9, ("t", 77): 1}) == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 2 + [0]
    assert each.txn_errors({A: 9}, metadata="m" * 5_000) == [Error.OFFSET_METADATA_TOO_LARGE]
    assert each.txn_errors({A: 9}, metadata=None) == [Error.NONE]


def test_without_a_known_partition_neither_group_nor_transaction_is_looked_at(each: Play) -> None:
    each.verified = Error.PRODUCER_FENCED
    assert each.txn_errors({("nosuch", 0): 1}, group="") == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert each.txn_errors({("nosuch", 0): 1, ("nosuch", 1): 1}) == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert each.txn_errors({}) == []
    assert each.txn_errors({A: 1}, group="") == [Error.INVALID_GROUP_ID]


def test_members_of_a_generation_commit_and_others_do_not(each: Play) -> None:
    member = each.stable_member()
    assert each.txn_errors({A: 1}, 1, member) == [Error.NONE]
    assert each.txn_errors({A: 1}, -1, "") == [Error.NONE]
    assert each.txn_errors({A: 1}, 2, member) == [Error.ILLEGAL_GENERATION]
    assert each.txn_errors({A: 1}, -1, member) == [Error.ILLEGAL_GENERATION]
    assert each.txn_errors({A: 1}, 1, "ghost") == [Error.UNKNOWN_MEMBER_ID]
    assert each.txn_errors({A: 1}, 1, "") == [Error.UNKNOWN_MEMBER_ID]


def test_a_replaced_static_member_is_fenced(each: Play) -> None:
    old = each.static_member()
    new = each.join("", "i1", version=9).response.member_id
    assert each.txn_errors({A: 1}, 1, old, "i1") == [Error.FENCED_INSTANCE_ID]
    assert each.txn_errors({A: 1}, 1, new, "i1") == [Error.NONE]


def test_a_member_of_an_unknown_group_gets_the_error_of_the_coordinator() -> None:
    for release, error in (("4.4", Error.ILLEGAL_GENERATION), ("3.9", Error.UNKNOWN_MEMBER_ID)):
        play = Play(kafka_version=release)
        assert play.txn_errors({A: 1}, 1, "ghost") == [error]
        assert play.txn_errors({A: 1}, -1, "m") == [Error.NONE]


def test_2_8_validates_the_member_of_an_empty_group_and_not_its_generation() -> None:
    play = Play(kafka_version="2.8")
    assert play.txn_errors({A: 1}, 0, "m") == [Error.UNKNOWN_MEMBER_ID]
    assert play.txn_errors({A: 1}, -1, "m") == [Error.UNKNOWN_MEMBER_ID]
    assert play.txn_errors({A: 1}, 1, "") == [Error.ILLEGAL_GENERATION]
    assert play.txn_errors({A: 1}, 0, "") == [Error.NONE]
    member = play.stable_member(group="other")
    assert play.txn_errors({A: 1}, -1, member, group="other") == [Error.NONE]
    assert play.txn_errors({A: 1}, 0, member, group="other") == [Error.ILLEGAL_GENERATION]
    assert play.txn_errors({A: 1}, 1, "ghost", group="other") == [Error.UNKNOWN_MEMBER_ID]


def test_2_8_never_asks_the_transaction_coordinator() -> None:
    play = Play(kafka_version="2.8")
    play.verified = Error.PRODUCER_FENCED
    assert play.txn_errors({A: 1}) == [Error.NONE]


@pytest.mark.parametrize(("unknown", "rows"), [((), [[0], [0]]), (("nosuch",), [[3], [0, 0]])])
def test_the_new_coordinator_answers_a_repeated_topic_twice_unless_partitions_are_unknown(
    unknown: tuple[str, ...], rows: list[list[int]]
) -> None:
    play = Play(kafka_version="4.4")
    row = TxnOffsetCommitRequestPartition(partition_index=A[1], committed_offset=9, committed_metadata="")
    topics = tuple(TxnOffsetCommitRequestTopic(name=name, partitions=(row,)) for name in (A[0], A[0], *unknown))
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=P,
        producer_epoch=0,
        topics=topics,
        generation_id_or_member_epoch=-1,
    )
    answer = play.send(request, 3).response
    assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == rows


@pytest.mark.parametrize("release", ["2.4", "2.8"])
def test_2_8_commits_the_offsets_of_no_producer_at_once(release: str) -> None:
    play = Play(kafka_version=release)
    assert play.txn_errors({A: 9, ("nosuch", 0): 1}, producer_id=-1, epoch=-1, version=2) == [3, 0]
    assert play.fetch(A)[A][0] == 9
    assert play.group().pending_offsets == {}
    assert play.appended[-1].producer is None


@pytest.mark.parametrize("release", ["2.4", "2.8"])
def test_2_8_fails_a_whole_commit_without_a_producer_epoch(release: str) -> None:
    play = Play(kafka_version=release)
    mark = len(play.appended)
    assert play.txn_errors({A: 9, ("nosuch", 0): 1}, epoch=-1, version=2) == [Error.UNKNOWN_SERVER_ERROR] * 2
    assert len(play.appended) == mark
    assert play.fetch(A, ("nosuch", 0)) == {A: NONE, ("nosuch", 0): NONE}
    # nothing is written, so nothing fails
    assert play.txn_errors({("nosuch", 0): 1}, epoch=-1, version=2) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert play.txn_errors({A: 1}, epoch=-1, metadata="m" * 5_000, version=2) == [Error.OFFSET_METADATA_TOO_LARGE]


def test_the_records_are_one_batch_of_the_producer(each: Play) -> None:
    each.txn_errors({A: 1, B: 2}, producer_id=P, epoch=3)
    batch = each.appended[-1]
    assert isinstance(batch, Append)
    assert (batch.producer, len(batch.records)) == ((P, 3), 2)


def test_a_failed_write_is_refused_and_nothing_is_pending(each: Play) -> None:
    each.writes = Error.NOT_LEADER_OR_FOLLOWER
    assert each.txn_errors({A: 1}) == [Error.NOT_COORDINATOR]
    each.writes = Error.NONE
    assert each.fetch(A, stable=True) == {A: NONE}


def test_in_the_old_coordinator_a_failed_write_also_ends_what_was_pending(each: Play) -> None:
    each.txn_errors({A: 9, B: 9})
    each.writes = Error.NOT_LEADER_OR_FOLLOWER
    assert each.txn_errors({A: 10}) == [Error.NOT_COORDINATOR]
    each.writes = Error.NONE
    is_new = each.coordinator.store.dialect.waits_for_log
    assert each.fetch(A, B, stable=True) == {A: UNSTABLE if is_new else NONE, B: UNSTABLE}


def test_the_new_coordinator_loads_a_group_whose_only_offset_was_aborted(each: Play) -> None:
    load(each, record(P, 9), TransactionEnd(P, is_commit=False))
    assert each.state() == ("Empty" if each.coordinator.store.dialect.waits_for_log else "Dead")


def test_a_loaded_offset_without_a_marker_is_pending(each: Play) -> None:
    load(each, record(None, 5), record(P, 9))
    assert (each.fetch(A, stable=True), each.offset(*A)) == ({A: UNSTABLE}, 5)
    each.end_transaction(P, commit=True)
    assert each.fetch(A, stable=True) == {A: (9, -1, "", 0)}


@pytest.mark.parametrize("later", [Q, None], ids=["of another producer", "ordinary"])
def test_loading_decides_by_the_order_of_the_records_too(each: Play, later: int | None) -> None:
    ends = [TransactionEnd(producer_id, is_commit=True) for producer_id in (Q, P)]
    load(each, record(P, 20), record(later, 30), *ends)
    assert each.fetch(A, stable=True) == {A: (30, -1, "", 0)}
    load(each, record(P, 20), record(later, 30), ends[0])
    each.end_transaction(P, commit=True)
    assert each.fetch(A, stable=True) == {A: (30, -1, "", 0)}


def test_deletion_removes_pending_offsets_and_the_marker_brings_nothing_back(each: Play) -> None:
    each.commit_errors(offsets={A: 5})
    each.txn_errors({A: 9})
    assert each.delete_offsets(A) == (Error.NONE, [Error.NONE])
    each.end_transaction(P, commit=True)
    assert each.fetch(A, stable=True) == {A: NONE}


def test_a_group_with_pending_offsets_can_be_deleted(each: Play) -> None:
    each.txn_errors({A: 9})
    assert each.delete("g") == {"g": Error.NONE}
    each.end_transaction(P, commit=True)
    assert each.fetch(A, stable=True) == {A: NONE}
    assert each.state() == "Dead"


def test_pending_offsets_keep_a_group_and_its_offsets_from_expiring() -> None:
    for release in ("4.4", "3.9"):
        play = Play(kafka_version=release, offsets_retention_minutes=1)
        play.commit_errors(offsets={A: 5, B: 5})
        play.txn_errors({A: 9})
        play.wait(3_600_000)
        assert play.fetch(A, B) == {A: (5, -1, "", 0), B: NONE}
        play.end_transaction(P, commit=False)
        play.wait(3_600_000)
        assert play.state() == "Dead"
