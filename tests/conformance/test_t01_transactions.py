"""Transactions: what producers, partition leaders and groups see of them (KIP-98, KIP-360, KIP-447, KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenarios.registry import scenario
from scenarios.transactional import TransactionalProducer

from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="KIP-98")
def test_t008_each_init_raises_the_epoch(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert [x.init(), x.init()] == [(0, p, 1), (0, p, 2)]


@scenario(kip="KIP-360")
def test_t009_half_an_identity_is_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    x.initialized()
    assert [x.init(5, -1)[0], x.init(-1, 3)[0]] == [42, 42]


@scenario(kip="KIP-360")
def test_t011_another_producer_id_is_fenced(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert [x.init(p + 100_000, 0)[0], x.init(p + 100_000, 0, version=3)[0]] == [90, 47]


@scenario(kip="KIP-98")
def test_t014_fencing_an_open_transaction_skips_an_epoch(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    assert x.init()[0] == 51
    assert x.init_until_served() == (0, p, 2)
    x.expect("Empty", 2)
    assert x.topics == []


@scenario(kip="KIP-890")
def test_t015_only_transaction_version_2_lets_a_fenced_producer_resume(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    assert x.init(p, 0)[0] == 51
    if play.since("4.0.0"):
        assert x.init_until_served(p, 0) == (0, p, 1)
        x.expect("Empty", 1)
    else:
        assert x.init_until_served(p, 0)[0] == 90
        x.expect("CompleteAbort", 1)


@scenario(kip="KIP-98")
def test_t017_requests_of_a_fenced_producer_are_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    x.init_until_served()
    assert x.add(p, 0, 0) == {0: 90}
    assert x.add_offsets(p, 0) == 90
    assert x.end(p, 0, commit=True) == 90
    assert x.produce(0, p, 0, 1)[0] == 47
    assert x.init(p, 0)[0] == 90


@scenario(kip="KIP-98")
def test_t023_unknown_partitions_spare_the_others(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add(p, 0, 0, 9) == {0: 55, 9: 3}
    assert x.add(p + 1, 0, 0, topic="nosuch") == {0: 3}
    x.expect("Empty", 0)


@scenario(kip="KIP-588")
def test_t026_another_epoch_is_refused_as_the_version_knows(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert [x.add(p, 1, 0, version=version)[0] for version in (0, 1, 2, 3)] == [47, 47, 90, 90]
    assert [x.add(p, -1, 0, version=version)[0] for version in (1, 3)] == [47, 90]
    assert [x.add_offsets(p, 1, version=version) for version in (0, 1, 2, 3)] == [47, 47, 90, 90]


@scenario(kip="base")
def test_t027_adding_nothing_starts_a_transaction(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add(p, 0) == {}
    x.expect("Ongoing", 0)
    assert x.topics == []


@scenario(kip="KIP-890")
def test_t029_a_batch_adds_and_verifies_each_transaction_by_itself(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    p, q = x.initialized(), y.initialized()
    unknown = TransactionalProducer(play, "unknown")
    unknown.topic = x.topic
    rows = (
        x.wanted(p, 0, 0, verify=True),
        y.wanted(q, 0, 0, 1, verify=False),
        unknown.wanted(p, 0, 0, verify=True),
    )
    answer = play.ask(AddPartitionsToTxnRequest(transactions=rows), 5).answer()
    errors = {
        row.transactional_id: [
            each.partition_error_code for topic in row.topic_results for each in topic.results_by_partition
        ]
        for row in answer.results_by_transaction
    }
    assert (answer.error_code, errors) == (0, {x.id: [120], y.id: [0, 0], unknown.id: [49]})


@scenario(kip="KIP-98")
def test_t035_a_commit_may_be_repeated(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    assert [x.end(p, 0, commit=True), x.end(p, 0, commit=False)] == [0, 48]
    x.expect("CompleteCommit", 0)


@scenario(kip="KIP-98")
def test_t036_an_abort_may_be_repeated_and_the_epoch_goes_on(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    assert x.end(p, 0, commit=False) == 0
    x.settle()
    assert [x.end(p, 0, commit=False), x.end(p, 0, commit=True)] == [0, 48]
    assert x.add(p, 0, 0) == {0: 0}


@scenario(kip="KIP-588")
def test_t038_an_end_with_another_epoch_is_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    assert [x.end(p, 1, commit=True, version=version) for version in (0, 1, 2, 3)] == [47, 47, 90, 90]
    assert [x.end(p, -1, commit=True, version=version) for version in (1, 2)] == [47, 90]
    assert x.end(p + 1_000, 0, commit=True) == 49
    x.expect("Ongoing", 0)


@scenario(kip="KIP-890")
def test_t042_version_5_raises_the_epoch_and_knows_a_repeat(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    x.settle()
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    assert [x.end5(p, 0, commit=False)[0], x.end5(p, 1, commit=True)[0]] == [48, 48]
    assert x.end5(p, 1, commit=False) == (0, p, 2)
    x.settle()
    x.expect("CompleteAbort", 2)


@scenario(kip="KIP-890")
def test_t044_version_5_aborts_what_was_never_begun(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert [x.end5(p, 0, commit=True)[0], x.end5(p, -1, commit=False)[0]] == [48, 90]
    assert x.end5(p, 0, commit=False) == (0, p, 1)
    x.settle()
    x.expect("CompleteAbort", 1)
    assert x.describe().transaction_start_time_ms > 0


@scenario(kip="KIP-890")
def test_t050_a_batch_outside_the_transaction_is_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    if play.since("3.8.0"):
        assert [x.produce(0, p, 0, 0, version=version)[0] for version in (11, 10, 7)] == [120, 48, 48]
        x.expect("Empty", 0)
    else:
        # a hanging transaction: its coordinator does not know of it
        assert x.produce(0, p, 0, 0)[0] == 0
        assert x.latest(1) == (0, 0)
        assert x.end(p, 0, commit=False) == 48


@pytest.mark.slow
@scenario(kip="KIP-890")
def test_t051_version_12_adds_the_partition(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.produce(0, p, 0, 0, version=12)[0] == 0
    x.expect("Ongoing", 0)
    assert x.topics == [(x.topic, (0,))]


@scenario(kip="KIP-890")
def test_t053_version_12_refuses_another_producer(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.produce(0, p + 1_000, 0, 0, version=12)[0] == 49
    assert x.produce(0, p, 1, 0, version=12)[0] == 47
    assert x.produce(0, p, 0, 0, version=12, tid="nobody")[0] == 49


@scenario(kip="KIP-98")
def test_t054_an_ordinary_batch_inside_the_transaction_is_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.produce(0, p, 0, 1, transactional=False)[0] == 48


@scenario(kip="KIP-890")
def test_t056_a_wrong_transactional_id_passes_while_the_transaction_is_open_there(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.produce(0, p, 0, 1, tid="nope")[0] == 0
    assert x.produce_for("nope", p) == (49 if play.since("3.6.0") else 0)


@scenario(kip="KIP-98")
def test_t059_a_fenced_producer_cannot_write_anywhere(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    x.init_until_served()
    assert x.produce(0, p, 0, 1) == (47, -1)
    assert x.produce(1, p, 0, 0) == ((47, -1) if play.since("3.6.0") else (0, 0))


@scenario(kip="KIP-98")
def test_t069_sequences_go_on_in_the_next_transaction_of_an_epoch(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    for sequence in (1, None):
        assert x.end(p, 0, commit=True) == 0
        x.settle()
        assert x.add(p, 0, 0) == {0: 0}
        if sequence is not None:
            assert x.produce(0, p, 0, sequence) == (0, 2)
    assert x.produce(0, p, 0, 0) == (0, 0)


@scenario(kip="KIP-890")
def test_t071_sequences_start_again_after_version_5(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.produce(0, p, 0, 0, version=12)[0] == 0
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    x.settle()
    assert x.produce(0, p, 0, 1, version=12)[0] == 47
    assert x.produce(0, p, 1, 2, version=12)[0] == 45
    assert x.produce(0, p, 1, 0, version=12)[0] == 0


@scenario(kip="KIP-98")
def test_t074_the_last_stable_offset_is_that_of_the_open_transaction(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.produce(0, -1, -1, -1, transactional=False, tid=None)[0] == 0
    assert x.add(p, 0, 0) == {0: 0}
    assert [x.produce(0, p, 0, sequence)[0] for sequence in (0, 1)] == [0, 0]
    assert x.produce(0, -1, -1, -1, transactional=False, tid=None)[0] == 0
    assert x.fetch(0, 1) == ([0], 1, [])
    assert x.fetch(0, 0) == ([0, 1, 2, 3], 1, None)
    assert x.fetch(1, 1) == ([], 1, [])
    assert [x.latest(0), x.latest(1)] == [(0, 4), (0, 1)]


@scenario(kip="KIP-98")
def test_t077_aborted_transactions_are_listed_in_the_order_of_their_markers(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    p, q = x.initialized(), y.initialized()
    y.topic = x.topic
    for _ in range(5):
        x.produce(0, -1, -1, -1, transactional=False, tid=None)
    for producer, number in ((x, p), (y, q)):
        assert producer.add(number, 0, 0) == {0: 0}
        assert producer.produce(0, number, 0, 0)[0] == 0
    assert y.end(q, 0, commit=False) == 0
    y.settle()
    assert x.latest(1) == (0, 5)
    assert x.end(p, 0, commit=False) == 0
    x.settle()
    assert x.fetch(0, 1)[1:] == (9, [(q, 6), (p, 5)])
    assert [x.fetch(6, 1)[2], x.fetch(7, 1)[2]] == [[(q, 6), (p, 5)]] * 2
    assert x.fetch(0, 0)[2] is None


@scenario(kip="KIP-890")
def test_t089_version_5_of_a_commit_adds_the_group(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.commit_offsets(p, 0, 9, version=5) == 0
    x.expect("Ongoing", 0)
    assert x.offset(stable=True) == (88, -1)


@scenario(kip="KIP-98")
def test_t090_a_commit_is_refused_as_the_transaction_coordinator_says(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p, 0) == 0
    assert x.commit_offsets(p + 1_000, 0, 9) == (49 if play.since("3.7.0") else 0)
    assert x.commit_offsets(p, 1, 9) == (47 if play.since("3.7.0") else 0)


@scenario(kip="KIP-447")
def test_t099_a_pending_offset_is_unstable_until_the_end(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    play.commit(-1, "", {(x.topic, 0): 5}).expect(0)
    assert x.add_offsets(p, 0) == 0
    assert x.commit_offsets(p, 0, 9) == 0
    assert [x.offset(stable=True), x.offset()] == [(88, -1), (0, 5)]
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    assert x.offset(stable=True) == (0, 9)


@scenario(kip="base")
def test_t101_of_two_producers_the_later_record_wins(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    p, q = x.initialized(), y.initialized()
    y.topic = x.topic
    assert [x.add_offsets(p, 0), y.add_offsets(q, 0)] == [0, 0]
    assert [x.commit_offsets(p, 0, 20), y.commit_offsets(q, 0, 30)] == [0, 0]
    assert y.end(q, 0, commit=True) == 0
    y.settle()
    assert [x.offset(stable=True), x.offset()] == [(88, -1), (0, 30)]
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    assert x.offset(stable=True) == (0, 30)


@scenario(kip="KIP-98")
def test_t107_fencing_drops_pending_offsets(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p, 0) == 0
    assert x.commit_offsets(p, 0, 5) == 0
    x.init_until_served()
    assert x.offset(stable=True) == (0, -1)
    assert x.commit_offsets(p, 0, 5) == 47
