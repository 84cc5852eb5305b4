"""EndTxn of both protocol versions, markers, time-outs and expiry."""

from __future__ import annotations

import pytest
from scenes.transaction_play import PENDING, TransactionPlay

from koordinator.emulator.core.effects import AppendTransaction
from koordinator.wire.errors import Error
from koordinator.wire.messages.list_transactions import ListTransactionsRequest
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest


def test_a_commit_may_be_repeated_and_not_aborted(both: TransactionPlay) -> None:
    producer_id = both.begun()
    assert [both.end(producer_id, 0, commit=True), both.end(producer_id, 0, commit=True)] == [0, 0]
    assert both.end(producer_id, 0, commit=False) == Error.INVALID_TXN_STATE
    assert (both.state, both.describe().producer_epoch) == ("CompleteCommit", 0)


def test_after_an_abort_the_same_epoch_goes_on(both: TransactionPlay) -> None:
    producer_id = both.begun()
    assert [both.end(producer_id, 0, commit=False), both.end(producer_id, 0, commit=False)] == [0, 0]
    assert both.end(producer_id, 0, commit=True) == Error.INVALID_TXN_STATE
    assert both.add(producer_id, 0, ("t", 0)) == {("t", 0): 0}


@pytest.mark.parametrize(
    ("epoch", "version", "error"),
    [(1, 0, 47), (1, 1, 47), (1, 2, 90), (1, 3, 90), (1, 4, 90), (-1, 1, 47), (-1, 2, 90)],
)
def test_another_epoch_is_refused_and_the_transaction_stays_open(
    both: TransactionPlay, epoch: int, version: int, error: int
) -> None:
    producer_id = both.begun()
    assert both.end(producer_id, epoch, commit=True, version=version) == error
    assert both.state == "Ongoing"


def test_an_unknown_producer_or_transactional_id_is_refused(both: TransactionPlay) -> None:
    producer_id = both.begun()
    assert both.end(producer_id + 1_000, 0, commit=True) == Error.INVALID_PRODUCER_ID_MAPPING
    assert both.end(producer_id, 0, commit=True, tid="unknown") == Error.INVALID_PRODUCER_ID_MAPPING
    assert both.end(producer_id, 0, commit=True, tid="") == Error.INVALID_REQUEST


def test_version_5_is_busy_until_the_markers_are_written(play: TransactionPlay) -> None:
    producer_id = play.begun()
    play.markers = None
    assert play.end(producer_id, 0, commit=True, version=5) == (0, producer_id, 1)
    busy = (Error.CONCURRENT_TRANSACTIONS, -1, -1)
    assert play.end(producer_id, 0, commit=True, version=5) == busy
    assert play.end(producer_id, 1, commit=True, version=5) == busy
    assert play.state == "PrepareCommit"
    play.answer_markers()
    assert play.state == "CompleteCommit"


def test_version_5_raises_the_epoch_and_knows_a_repeated_request(play: TransactionPlay) -> None:
    producer_id = play.begun()
    assert play.end(producer_id, 0, commit=True, version=5) == (0, producer_id, 1)
    assert play.end(producer_id, 0, commit=True, version=5) == (0, producer_id, 1)
    assert play.end(producer_id, 0, commit=False, version=5)[0] == Error.INVALID_TXN_STATE
    assert play.end(producer_id, 1, commit=True, version=5)[0] == Error.INVALID_TXN_STATE
    assert play.end(producer_id, 1, commit=False, version=5) == (0, producer_id, 2)
    assert (play.state, play.describe().producer_epoch) == ("CompleteAbort", 2)


def test_version_5_aborts_what_was_never_begun(play: TransactionPlay) -> None:
    _, producer_id, _ = play.init()
    assert play.end(producer_id, 0, commit=True, version=5)[0] == Error.INVALID_TXN_STATE
    assert play.end(producer_id, -1, commit=False, version=5)[0] == Error.PRODUCER_FENCED
    assert play.end(producer_id, 0, commit=False, version=5) == (0, producer_id, 1)
    assert play.state == "CompleteAbort"
    assert play.describe().transaction_start_time_ms == play.now


@pytest.mark.parametrize(("offset", "epoch", "error"), [(0, 1, 90), (0, -1, 90), (1_000, 0, 49)])
def test_version_5_refuses_another_producer(play: TransactionPlay, offset: int, epoch: int, error: int) -> None:
    producer_id = play.begun()
    assert play.end(producer_id + offset, epoch, commit=True, version=5) == (error, -1, -1)


@pytest.mark.slow
def test_version_5_leaves_an_exhausted_epoch_with_a_new_producer_id(play: TransactionPlay) -> None:
    _, producer_id, epoch = play.init()
    while epoch < 32_766:
        _, _, epoch = play.init()
    play.add(producer_id, epoch, ("t", 0))
    ended = play.end(producer_id, 32_766, commit=True, version=5)
    assert ended == (0, ended[1], 0)
    assert ended[1] != producer_id
    row = play.describe()
    assert (row.transaction_state, row.producer_id, row.producer_epoch) == ("CompleteCommit", ended[1], 0)
    assert play.end(producer_id, 32_766, commit=True, version=5) == ended
    assert play.end(producer_id, 32_766, commit=False, version=5)[0] == Error.INVALID_TXN_STATE
    assert play.add(producer_id, 32_766, ("t", 0)) == {("t", 0): Error.INVALID_PRODUCER_ID_MAPPING}
    request = play.sent[-1].request
    assert isinstance(request, WriteTxnMarkersRequest)
    assert (request.markers[0].producer_id, request.markers[0].producer_epoch) == (producer_id, 32_767)


def test_at_level_0_version_5_is_refused_and_its_change_stays_pending() -> None:
    play = TransactionPlay(transaction_version=0)
    producer_id = play.begun()
    assert play.end(producer_id, 0, commit=True, version=5) == (Error.UNSUPPORTED_VERSION, -1, -1)
    assert play.state == "Ongoing"
    assert play.end(producer_id, 0, commit=True) == Error.CONCURRENT_TRANSACTIONS
    assert play.add(producer_id, 0, ("t", 1)) == {("t", 1): Error.CONCURRENT_TRANSACTIONS}
    play.advance(120_000)
    assert play.state == "Ongoing", "nothing aborts it"


def test_at_level_1_version_5_raises_the_epoch() -> None:
    play = TransactionPlay(transaction_version=1)
    producer_id = play.begun()
    assert play.end(producer_id, 0, commit=True, version=5) == (0, producer_id, 1)


def test_markers_have_the_epoch_the_result_and_the_version(play: TransactionPlay, old: TransactionPlay) -> None:
    for coordinator, version, epoch, level, marker_version in (
        (play, 5, 1, 2, 2),
        (play, 3, 0, 0, 2),
        (old, 3, 0, 0, 1),
    ):
        coordinator.__init__(kafka_version=coordinator.coordinator.store.settings.kafka_version)  # type: ignore[misc]
        producer_id = coordinator.begun()
        coordinator.end(producer_id, 0, commit=False, version=version)
        sent = coordinator.sent[-1]
        assert (sent.node_id, sent.version) == (1, marker_version)
        assert isinstance(sent.request, WriteTxnMarkersRequest)
        (marker,) = sent.request.markers
        assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (producer_id, epoch, False)
        assert (marker.coordinator_epoch, marker.transaction_version) == (5, level)


def test_a_lost_marker_is_sent_again_until_it_is_written(both: TransactionPlay) -> None:
    producer_id = both.begun()
    both.markers = None
    both.end(producer_id, 0, commit=True)
    both.lose_markers()
    both.advance(100)
    both.answer_markers(Error.NOT_LEADER_OR_FOLLOWER)
    assert both.state == "PrepareCommit"
    both.advance(100)
    both.answer_markers()
    assert both.state == "CompleteCommit"


@pytest.mark.parametrize("error", [Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED])
def test_a_marker_refused_for_good_leaves_the_transaction_prepared(both: TransactionPlay, error: Error) -> None:
    producer_id = both.begun()
    both.markers = error
    assert both.end(producer_id, 0, commit=True) == 0
    both.advance(10_000)
    assert both.state == "PrepareCommit"
    assert both.end(producer_id, 0, commit=True) == Error.CONCURRENT_TRANSACTIONS
    assert both.init()[0] == Error.CONCURRENT_TRANSACTIONS
    both.markers = Error.NONE
    store = both.coordinator.store
    partition = store.partition_of("x")
    records = [(record.transactional_id, record.record) for record in both.records]
    both.coordinator.unload(both.now, partition)
    both.coordinator.begin_load(both.now, partition)
    both._take(both.coordinator.loaded(both.now, partition, records))
    assert both.state == "CompleteCommit"


def test_a_marker_refused_for_good_spares_the_partitions_whose_marker_is_written(both: TransactionPlay) -> None:
    producer_id = both.begun()
    both.add(producer_id, 0, ("t", 1))
    both.markers = None
    both.end(producer_id, 0, commit=True)
    both.answer_markers(Error.NONE, {("t", 0): Error.INVALID_PRODUCER_EPOCH})
    (topic,) = both.describe().topics
    assert (both.state, topic.partitions) == ("PrepareCommit", (0,))


def test_the_marker_of_a_deleted_topic_is_not_needed(both: TransactionPlay) -> None:
    producer_id = both.begun()
    both.cluster.delete_topic(both.cluster.topics["t"])
    assert both.end(producer_id, 0, commit=True) == 0
    assert both.state == "CompleteCommit"


def test_a_transaction_is_aborted_at_its_timeout_which_adds_do_not_extend(both: TransactionPlay) -> None:
    producer_id = both.begun(timeout=3_000)
    both.advance(2_000)
    assert both.add(producer_id, 0, ("t", 1)) == {("t", 1): 0}
    both.advance(1_000)
    assert both.state == "Ongoing"
    both.advance(1_000)
    assert (both.state, both.describe().producer_epoch) == ("CompleteAbort", 1)


def test_an_id_without_a_transaction_never_times_out(both: TransactionPlay) -> None:
    both.init(timeout=1_000)
    both.advance(60_000)
    assert (both.state, both.describe().producer_epoch) == ("Empty", 0)


def test_after_a_time_out_the_old_protocol_is_fenced(both: TransactionPlay) -> None:
    producer_id = both.begun(timeout=2_000)
    both.advance(4_000)
    assert both.add(producer_id, 0, ("t", 0)) == {("t", 0): Error.PRODUCER_FENCED}
    assert both.add(producer_id, 0, ("t", 0), version=1) == {("t", 0): Error.INVALID_PRODUCER_EPOCH}
    assert both.add_offsets(producer_id, 0) == Error.PRODUCER_FENCED
    assert both.end(producer_id, 0, commit=True) == Error.PRODUCER_FENCED
    assert both.end(producer_id, 0, commit=False, version=1) == Error.INVALID_PRODUCER_EPOCH


def test_after_a_time_out_version_5_may_abort(play: TransactionPlay) -> None:
    producer_id = play.begun(timeout=2_000)
    play.advance(4_000)
    assert play.end(producer_id, 0, commit=True, version=5)[0] == Error.INVALID_TXN_STATE
    assert play.end(producer_id, 0, commit=False, version=5) == (0, producer_id, 1)


def test_an_idle_id_expires_and_an_open_transaction_does_not(both: TransactionPlay) -> None:
    both.__init__(  # type: ignore[misc]
        transactional_id_expiration_ms=3_000, transaction_remove_expired_transaction_cleanup_interval_ms=1_000
    )
    _, producer_id, _ = both.init()
    _, other, _ = both.init(tid="y")
    both.add(other, 0, ("t", 0), tid="y")
    both.advance(6_000)
    listed = both.send(ListTransactionsRequest(), 0).transaction_states
    assert [(row.transactional_id, row.transaction_state) for row in listed] == [("y", "Ongoing")]
    assert both.describe().error_code == Error.TRANSACTIONAL_ID_NOT_FOUND
    assert both.add(producer_id, 0, ("t", 0)) == {("t", 0): Error.INVALID_PRODUCER_ID_MAPPING}
    resumed = both.init(producer_id, 0)
    assert resumed == (0, resumed[1], 0)
    assert resumed[1] != producer_id
    assert any(isinstance(record, AppendTransaction) and record.record is None for record in both.records)


def test_each_step_of_a_transaction_is_one_record(both: TransactionPlay) -> None:
    producer_id = both.begun()
    both.end(producer_id, 0, commit=False)
    statuses = [record.record.transaction_status for record in both.records if record.record is not None]
    assert statuses == [0, 1, 3, 5]


def test_list_filters_are_combined(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    both.begun()
    both.init(tid="idle")

    def listed(**filters: object) -> tuple[tuple[str, ...], list[str]]:
        response = both.send(ListTransactionsRequest(**filters), 2)
        return response.unknown_state_filters, [row.transactional_id for row in response.transaction_states]

    assert listed(state_filters=("Ongoing", "Bogus", "Bogus")) == (("Bogus",), ["x"])
    assert listed(state_filters=("ongoing",)) == (("ongoing",), [])
    assert listed(producer_id_filters=(producer_id,)) == ((), ["x"])
    assert listed(state_filters=("Empty",), producer_id_filters=(producer_id,)) == ((), [])
    assert listed(duration_filter=100_000) == ((), ["idle"])
    assert listed(transactional_id_pattern="i.*") == ((), ["idle"])
    assert listed(transactional_id_pattern="(a+)+$") == ((), [])
    response = both.send(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert response.error_code == Error.INVALID_REGULAR_EXPRESSION


def test_writes_in_flight_fail_when_the_coordinator_moves(both: TransactionPlay) -> None:
    _, producer_id, _ = both.init()
    both.writes = None
    assert both.end(producer_id, 0, commit=True) == Error.INVALID_TXN_STATE
    assert both.add(producer_id, 0, ("t", 0)) is PENDING
    waiting = both._number
    partition = both.coordinator.store.partition_of("x")
    both._take(both.coordinator.unload(both.now, partition))
    (topic,) = both.response(waiting).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == Error.NOT_COORDINATOR
    assert both.init()[0] == Error.NOT_COORDINATOR
