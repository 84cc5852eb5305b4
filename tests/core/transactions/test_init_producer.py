"""InitProducerId of transactional producers: epochs, resuming, fencing."""

from __future__ import annotations

import pytest
from scenes.transaction_play import PENDING, TransactionPlay

from koordinator.wire.errors import Error


def test_each_call_gives_the_same_id_and_the_next_epoch(both: TransactionPlay) -> None:
    first = both.init()
    assert first == (0, first[1], 0)
    assert [both.init(), both.init()] == [(0, first[1], 1), (0, first[1], 2)]


@pytest.mark.parametrize("timeout", [0, -1, 900_001])
def test_a_timeout_out_of_range_is_refused(both: TransactionPlay, timeout: int) -> None:
    assert both.init(timeout=timeout) == (Error.INVALID_TRANSACTION_TIMEOUT, -1, -1)


def test_an_empty_transactional_id_is_refused(both: TransactionPlay) -> None:
    assert both.init(tid="") == (Error.INVALID_REQUEST, -1, -1)


def test_an_unknown_id_that_resumes_gets_a_new_producer_id(both: TransactionPlay) -> None:
    error, producer_id, epoch = both.init(424_242, 7)
    assert (error, epoch) == (0, 0)
    assert producer_id != 424_242
    assert both.init(424_242, 7)[0] == Error.PRODUCER_FENCED


@pytest.mark.parametrize(("version", "error"), [(3, Error.INVALID_PRODUCER_EPOCH), (4, Error.PRODUCER_FENCED)])
def test_another_producer_id_is_fenced_with_the_error_of_the_version(
    both: TransactionPlay, version: int, error: Error
) -> None:
    _, producer_id, _ = both.init()
    assert both.init(producer_id + 100_000, 0, version=version) == (error, -1, -1)


def test_a_producer_resumes_once_and_may_repeat_the_request(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    assert both.init(producer_id, 0) == (0, producer_id, 1)
    assert both.init(producer_id, 0) == (0, producer_id, 1)
    assert both.init(producer_id, 5)[0] == Error.PRODUCER_FENCED


def test_a_producer_fenced_during_a_transaction_is_followed_by_epoch_2(both: TransactionPlay) -> None:
    producer_id = both.begun()
    assert both.init() == (Error.CONCURRENT_TRANSACTIONS, -1, -1)
    assert both.init() == (0, producer_id, 2)
    row = both.describe()
    assert (row.transaction_state, row.topics, row.producer_epoch) == ("Empty", (), 2)


def test_a_fenced_producer_resumes_with_transaction_version_2_only(play: TransactionPlay, old: TransactionPlay) -> None:
    producer_id = play.begun()
    assert play.init(producer_id, 0)[0] == Error.CONCURRENT_TRANSACTIONS
    assert play.init(producer_id, 0) == (0, producer_id, 1)
    assert play.state == "Empty"

    producer_id = old.begun()
    assert old.init(producer_id, 0)[0] == Error.CONCURRENT_TRANSACTIONS
    assert old.init(producer_id, 0)[0] == Error.PRODUCER_FENCED
    assert (old.state, old.describe().producer_epoch) == ("CompleteAbort", 1)


def test_the_start_time_is_reset_since_4_0(play: TransactionPlay, old: TransactionPlay) -> None:
    for coordinator, start in ((play, -1), (old, old.now)):
        coordinator.begun()
        coordinator.init()
        coordinator.init()
        assert coordinator.describe().transaction_start_time_ms == start


def test_requests_of_a_fenced_producer_are_refused(both: TransactionPlay) -> None:
    producer_id = both.begun()
    both.init_until_served()
    assert both.add(producer_id, 0, ("t", 0)) == {("t", 0): Error.PRODUCER_FENCED}
    assert both.add_offsets(producer_id, 0) == Error.PRODUCER_FENCED
    assert both.end(producer_id, 0, commit=True) == Error.PRODUCER_FENCED
    assert both.init(producer_id, 0)[0] == Error.PRODUCER_FENCED


@pytest.mark.slow
def test_exhausted_epochs_continue_with_a_new_producer_id(both: TransactionPlay) -> None:
    _, producer_id, epoch = both.init()
    while epoch < 32_766:
        _, same, epoch = both.init()
        assert same == producer_id
    resumed = both.init(producer_id, 32_766)
    assert resumed == (0, resumed[1], 0)
    assert resumed[1] != producer_id
    assert both.init(producer_id, 32_766) == resumed


def test_nothing_is_answered_before_it_is_durable(play: TransactionPlay) -> None:
    play.writes = None
    assert play.init() is PENDING
    assert play.init() == (Error.CONCURRENT_TRANSACTIONS, -1, -1)
    play.complete_write()
    assert play.init() is PENDING


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_write_takes_the_change_back(play: TransactionPlay, failure: Error, error: Error) -> None:
    _, producer_id, _ = play.init()
    play.writes = failure
    assert play.init() == (error, -1, -1)
    play.writes = Error.NONE
    assert play.init() == (0, producer_id, 1)


def test_an_empty_transactional_id_is_loaded_without_the_start_of_its_last_transaction() -> None:
    play = TransactionPlay(kafka_version="3.9")
    play.begun()
    play.init_until_served()
    assert (play.state, play.describe().transaction_start_time_ms) == ("Empty", play.now)
    record = play.records[-1].record
    assert record is not None
    assert record.transaction_start_timestamp_ms == -1
