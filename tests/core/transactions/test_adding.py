"""AddPartitionsToTxn and AddOffsetsToTxn: what joins a transaction, and what is verified to be in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenes.transaction_play import PENDING, TransactionPlay

from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


def test_an_unknown_partition_spares_the_others_and_hides_other_errors(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    assert both.add(producer_id, 0, ("t", 0), ("t", 9), ("nosuch", 0)) == {
        ("t", 0): Error.OPERATION_NOT_ATTEMPTED,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("nosuch", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert both.state == "Empty"
    hidden = {("nosuch", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert both.add(producer_id + 1, 0, ("nosuch", 0)) == hidden, "another producer id"
    assert both.add(producer_id, 0, ("nosuch", 0), tid="nobody") == hidden, "an unknown transactional id"


@pytest.mark.parametrize(
    ("epoch", "version", "error"),
    [
        (1, 0, Error.INVALID_PRODUCER_EPOCH),
        (1, 1, Error.INVALID_PRODUCER_EPOCH),
        (1, 2, Error.PRODUCER_FENCED),
        (1, 3, Error.PRODUCER_FENCED),
        (-1, 1, Error.INVALID_PRODUCER_EPOCH),
        (-1, 3, Error.PRODUCER_FENCED),
    ],
)
def test_another_epoch_is_refused_with_the_error_of_the_version(
    both: TransactionPlay, epoch: int, version: int, error: Error
) -> None:
    _, producer_id, _ = both.init()
    assert both.add(producer_id, epoch, ("t", 0), version=version) == {("t", 0): error}
    if epoch == 1:
        assert both.add_offsets(producer_id, epoch, version=version) == error


def test_adding_nothing_starts_a_transaction(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    assert both.add(producer_id, 0) == {}
    assert (both.state, both.describe().topics) == ("Ongoing", ())


def test_adding_the_same_partition_again_writes_nothing(both: TransactionPlay) -> None:
    producer_id = both.begun()
    written = len(both.records)
    assert both.add(producer_id, 0, ("t", 0)) == {("t", 0): 0}
    assert len(both.records) == written


def test_offsets_add_the_partition_that_stores_the_group(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    assert both.add_offsets(producer_id, 0) == 0
    (topic,) = both.describe().topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", (both.cluster.partition_of("g"),))
    assert both.add_offsets(producer_id, 0, group="") == 0


def test_offsets_are_refused_for_an_unknown_producer_or_transactional_id(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    assert both.add_offsets(producer_id + 1_000, 0) == Error.INVALID_PRODUCER_ID_MAPPING
    assert both.add_offsets(producer_id, 0, tid="unknown") == Error.INVALID_PRODUCER_ID_MAPPING
    assert both.add_offsets(producer_id, 0, tid="") == Error.INVALID_REQUEST


def wanted(tid: str, producer_id: int, epoch: int, *partitions: int, verify: bool) -> AddPartitionsToTxnTransaction:
    topics = (AddPartitionsToTxnTopic(name="t", partitions=partitions),)
    return AddPartitionsToTxnTransaction(
        transactional_id=tid, producer_id=producer_id, producer_epoch=epoch, verify_only=verify, topics=topics
    )


def batch(play: TransactionPlay, *transactions: AddPartitionsToTxnTransaction) -> dict[str, list[int]]:
    response = play.send(AddPartitionsToTxnRequest(transactions=transactions), 5)
    assert response.error_code == 0
    return {
        row.transactional_id: [
            each.partition_error_code for topic in row.topic_results for each in topic.results_by_partition
        ]
        for row in response.results_by_transaction
    }


def first_errors(play: TransactionPlay) -> list[int]:
    """Return the error of the first partition in each row of the latest answer."""
    return [
        row.topic_results[0].results_by_partition[0].partition_error_code for row in play.last.results_by_transaction
    ]


def test_a_batch_adds_and_verifies_each_transaction_by_itself(play: TransactionPlay) -> None:
    _, x, _ = play.init(tid="x")
    _, y, _ = play.init(tid="y")
    assert batch(
        play,
        wanted("x", x, 0, 0, verify=True),
        wanted("y", y, 0, 0, 1, verify=False),
        wanted("unknown", 1, 0, 0, verify=True),
    ) == {"x": [Error.TRANSACTION_ABORTABLE], "y": [0, 0], "unknown": [Error.INVALID_PRODUCER_ID_MAPPING]}
    assert batch(play, wanted("y", y, 0, 0, verify=True), wanted("x", x, 1, 0, verify=True)) == {
        "y": [0],
        "x": [Error.PRODUCER_FENCED],
    }


def test_a_batch_is_answered_when_its_last_write_is_durable(play: TransactionPlay) -> None:
    _, x, _ = play.init(tid="x")
    _, y, _ = play.init(tid="y")
    play.writes = None
    request = AddPartitionsToTxnRequest(
        transactions=(wanted("x", x, 0, 0, verify=False), wanted("y", y, 0, 0, verify=False))
    )
    assert play.send(request, 5) is PENDING
    play.complete_write()
    assert play.last is PENDING
    play.complete_write(Error.NOT_ENOUGH_REPLICAS)
    rows = {
        row.transactional_id: row.topic_results[0].results_by_partition[0] for row in play.last.results_by_transaction
    }
    assert {tid: row.partition_error_code for tid, row in rows.items()} == {
        "x": 0,
        "y": Error.COORDINATOR_NOT_AVAILABLE,
    }


@pytest.mark.parametrize("verify", [True, False])
def test_a_transaction_that_is_given_twice_has_two_rows(play: TransactionPlay, *, verify: bool) -> None:
    _, x, _ = play.init(tid="x")
    rows = (wanted("x", x, 0, 0, 0, verify=verify), wanted("x", x, 0, 1, verify=verify))
    answer = play.send(AddPartitionsToTxnRequest(transactions=rows), 5)
    found = [
        [each.partition_index for topic in row.topic_results for each in topic.results_by_partition]
        for row in answer.results_by_transaction
    ]
    # the last one is verified; that of the first is answered when adding
    assert found == ([[1], [1]] if verify else [[0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("error", "answered"), [(Error.NONE, 0), (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE)]
)
def test_rows_that_repeat_a_transaction_wait_for_the_write_of_the_first(
    play: TransactionPlay, error: Error, answered: int
) -> None:
    _, x, _ = play.init(tid="x")
    play.writes = None
    rows = (wanted("x", x, 0, 0, verify=False), wanted("x", x, 1, 0, verify=False), wanted("x", x, 0, 0, verify=False))
    assert play.send(AddPartitionsToTxnRequest(transactions=rows), 5) is PENDING
    play.complete_write(error)
    assert first_errors(play) == [answered, Error.PRODUCER_FENCED, answered]


@pytest.mark.parametrize(
    ("error", "verified"), [(Error.NONE, Error.NONE), (Error.NOT_ENOUGH_REPLICAS, Error.TRANSACTION_ABORTABLE)]
)
def test_a_row_that_verifies_sees_what_a_row_before_it_has_added(
    play: TransactionPlay, error: Error, verified: Error
) -> None:
    _, x, _ = play.init(tid="x")
    play.writes = None
    rows = (wanted("x", x, 0, 0, verify=True), wanted("x", x, 0, 0, verify=False), wanted("x", x, 0, 0, verify=True))
    assert play.send(AddPartitionsToTxnRequest(transactions=rows), 5) is PENDING
    play.complete_write(error)
    added = Error.COORDINATOR_NOT_AVAILABLE if error is not Error.NONE else Error.NONE
    assert first_errors(play) == [Error.TRANSACTION_ABORTABLE, added, verified]


def test_a_topic_that_is_given_twice_has_two_rows(play: TransactionPlay) -> None:
    _, x, _ = play.init(tid="x")
    twice = tuple(AddPartitionsToTxnTopic(name="t", partitions=(each,)) for each in (0, 0))
    row = replace(wanted("x", x, 0, 0, verify=False), topics=twice)
    (answer,) = play.send(AddPartitionsToTxnRequest(transactions=(row,)), 5).results_by_transaction
    assert [[each.partition_index for each in topic.results_by_partition] for topic in answer.topic_results] == [
        [0]
    ] * 2


def test_an_empty_batch_is_never_answered(play: TransactionPlay) -> None:
    assert play.send(AddPartitionsToTxnRequest(), 4) is PENDING


def test_a_pending_change_is_answered_before_the_producer_is_compared_since_4_0(
    play: TransactionPlay, old: TransactionPlay
) -> None:
    for coordinator, error in ((play, Error.CONCURRENT_TRANSACTIONS), (old, Error.INVALID_PRODUCER_ID_MAPPING)):
        _, producer_id, _ = coordinator.init()
        coordinator.writes = None
        assert coordinator.add(producer_id, 0, ("t", 0)) is PENDING
        assert coordinator.add(producer_id + 1, 0, ("t", 0)) == {("t", 0): error}
