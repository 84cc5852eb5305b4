"""Transactional and idempotent producers: identities, sequences, markers, and the offsets of readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scenarios.registry import scenario
from scenarios.transaction_requests import a_batch
from scenarios.transactional import TransactionalProducer

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from scenarios.answers import PendingRequest
    from scenarios.player import Player


def batch_errors(answer: Any) -> dict[str, dict[tuple[str, int], int]]:
    """Return the errors of a batched AddPartitionsToTxn, by transactional id and partition."""
    return {
        row.transactional_id: {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in row.topic_results
            for each in topic.results_by_partition
        }
        for row in answer.results_by_transaction
    }


@scenario(kip="KIP-98")
def test_t005_without_a_transactional_id_each_call_gets_another_producer_id(play: Player) -> None:
    x = TransactionalProducer(play)
    answers = [x.init(tid=None, timeout_ms=timeout_ms) for timeout_ms in (60_000, -5, 0)]
    assert {(error, epoch) for error, _, epoch in answers} == {(0, 0)}
    assert len({producer_id for _, producer_id, _ in answers}) == 3


@scenario(kip="KIP-98")
def test_t006_an_empty_transactional_id_is_refused(play: Player) -> None:
    assert TransactionalProducer(play).init(tid="") == (42, -1, -1)


@scenario(kip="KIP-360")
def test_t012_an_unknown_transactional_id_gets_a_new_producer_id(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    x.initialized()
    with y.waiting():
        while (answer := y.init(424_242, 7))[0] in {14, 15, 16}:
            play.wait(0.1)
    assert (answer[0], answer[2]) == (0, 0)
    assert answer[1] != 424_242
    assert y.init(424_242, 7)[0] == 90


@scenario(kip="KIP-890")
def test_t030_verification_compares_partitions_and_epoch(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    p, q = x.initialized(), y.begun()
    rows = (x.wanted(p, 1, 0, verify=True), y.wanted(q, 0, 0, 1, verify=True))
    answer = play.ask(AddPartitionsToTxnRequest(transactions=rows), 5).answer()
    assert batch_errors(answer) == {x.id: {(x.topic, 0): 90}, y.id: {(y.topic, 0): 0, (y.topic, 1): 120}}


@scenario(kip="KIP-98")
def test_t149_a_partition_that_is_added_twice_in_a_request(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    for producer_id in (p + 1, p):
        topics = (AddPartitionsToTxnTopic(name=x.topic, partitions=(0, 1, 1)),)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=x.id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
        answer = play.ask(request, 1).unrecorded()
        rows = [
            (row.partition_index, row.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        ]
        play.transcript.add("AddPartitionsToTxn", 1, f"{rows}")


@scenario(kip="KIP-98")
def test_t032_offsets_add_a_partition_of_the_groups_topic(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p, 0) == 0
    x.expect("Ongoing", 0)
    assert [topic for topic, _ in x.topics] in (["__consumer_offsets"], [])


@pytest.mark.slow
@scenario(kip="KIP-98")
def test_t033_offsets_are_refused_for_another_producer(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p + 1_000, 0) == 49
    unknown = TransactionalProducer(play, "unknown")
    assert unknown.add_offsets(p, 0) == 49
    assert x.add_offsets(p, 0, tid="") == 42
    assert x.add_offsets(p, 0, group="") == 0


@scenario(kip="KIP-98")
def test_t039_the_end_is_refused_for_another_producer(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    unknown = TransactionalProducer(play, "unknown")
    assert x.end(p + 1_000, 0, commit=True) == 49
    assert unknown.end(p, 0, commit=True) == 49
    assert x.end(p, 0, commit=True, tid="") == 42


@scenario(kip="KIP-890")
def test_t045_version_5_refuses_another_producer(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    refused = [x.end5(p, 1, commit=True), x.end5(p, -1, commit=True), x.end5(p + 1_000, 0, commit=True)]
    assert refused == [(90, -1, -1), (90, -1, -1), (49, -1, -1)]


@scenario(kip="KIP-98")
def test_t057_an_ordinary_batch_may_have_a_transactional_id(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    assert x.produce(0, -1, -1, -1, transactional=False) == (0, 0)


@scenario(kip="KIP-98")
def test_t060_five_batches_are_remembered(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    _, i, _ = x.init(tid=None)

    def produce(sequence: int, records: int = 1) -> tuple[int, int]:
        return x.produce(0, i, 0, sequence, transactional=False, tid=None, records=records)

    assert [produce(sequence) for sequence in range(7)] == [(0, offset) for offset in range(7)]
    again = [produce(sequence) for sequence in range(7)]
    assert again == [(45, -1), (45, -1), *((0, offset) for offset in range(2, 7))]
    assert [produce(9), produce(6, records=2)] == [(45, -1), (45, -1)]


@scenario(kip="KIP-360")
def test_t062_an_unknown_producer_may_start_anywhere(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    _, j, _ = x.init(tid=None)
    answers = [x.produce(0, j, 0, sequence, transactional=False, tid=None)[0] for sequence in (7, 8, 10)]
    assert answers == [0, 0, 45]
    assert x.produce(0, 987_654, 3, 0, transactional=False, tid=None)[0] == 0


@scenario(kip="base")
def test_t063_sequences_start_again_at_0_after_the_largest(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    _, j, _ = x.init(tid=None)
    for sequence, records in ((2_147_483_646, 1), (2_147_483_647, 3), (2, 1), (3, 1)):
        assert x.produce(0, j, 0, sequence, transactional=False, tid=None, records=records)[0] == 0


@scenario(kip="base")
def test_t065_two_batches_in_one_partition_are_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    two = a_batch(-1, -1, -1, transactional=False) * 2
    assert x.produce_bytes({0: two}, tid=None) == {0: (87, -1)}


@scenario(kip="KIP-890")
def test_t072_the_next_transaction_waits_for_the_markers_of_the_last(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.produce(0, p, 0, 0, version=12)[0] == 0
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    with x.waiting():
        while (error := x.produce(0, p, 1, 0, version=12)[0]) == 51:
            play.wait(0.1)
    assert error == 0


@scenario(kip="KIP-98")
def test_t080_a_timestamp_above_the_last_stable_offset_is_not_found(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.ordinary(timestamp=1_000)[0] == 0
    assert x.add(p, 0, 0) == {0: 0}
    assert x.produce(0, p, 0, 0, timestamp=2_000)[0] == 0
    times = (500, 1_500, 2_000, 2_500)
    assert [x.latest(0, timestamp=time)[1] for time in times] == [0, 1, 1, -1]
    assert [x.latest(1, timestamp=time) for time in times] == [(0, 0), (0, -1), (0, -1), (0, -1)]


@scenario(kip="KIP-664")
def test_t083_unknown_partitions_have_no_producers(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    rows = [x.producers(topic="nosuch"), x.producers(topic="bad name!"), x.producers(7)]
    found = [(row.error_code, row.error_message is None) for row in rows]
    assert found == ([(3, False), (17, False), (3, True)] if play.since("3.0.0") else [(3, True)] * 3)


@scenario(kip="KIP-664")
def test_t084_markers_of_an_administrator_are_fenced(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    x.init()
    x.init()
    assert x.add(p, 2, 0) == {0: 0}
    assert x.produce(0, p, 2, 0)[0] == 0
    assert x.write_markers(p, 1, 0) == [47]
    assert x.write_markers(p, 2, 0) == [0]
    assert x.write_markers(p, 2, 0, coordinator_epoch=5) == [0]
    assert x.write_markers(p, 2, 0) == [52]
    assert [x.write_markers(p, 2, 7), x.write_markers(p, 2, 0, topic="nosuch")] == [[3], [3]]
    x.expect("Ongoing", 2)
    assert x.fetch(0, 1)[2] == [(p, 0)]
    (row,) = x.producers().active_producers
    found = (row.producer_epoch, row.last_sequence, row.coordinator_epoch, row.current_txn_start_offset)
    assert found == (2, 0, 5, -1)


@scenario(kip="KIP-890")
def test_t086_transaction_version_2_needs_a_higher_epoch(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    errors = [x.write_markers(p, epoch, 0, version=2, transaction_version=2) for epoch in (0, 1, 1)]
    assert errors == [[47], [0], [0]]


@scenario(kip="base")
def test_t087_a_marker_refused_for_good_leaves_the_transaction_prepared(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.write_markers(p, 0, 0, coordinator_epoch=50) == [0]
    assert x.produce(0, p, 0, 1)[0] == 0
    assert x.end(p, 0, commit=True) == 0
    play.wait(1)
    x.expect("PrepareCommit", 0)
    assert [x.end(p, 0, commit=False), x.end(p, 0, commit=True), x.end(p, 1, commit=True)] == [51, 51, 90]
    assert [x.add(p, 0, 1)[1], x.init()[0], x.init(p, 0)[0]] == [51, 51, 51]
    assert x.produce(0, p, 0, 2)[0] == 0
    if play.since("3.6.0"):
        assert x.produce(1, p, 0, 0)[0] == 19
    assert x.add(p + 1_000, 0, 0)[0] == (51 if play.since("4.0.0") else 49)


@scenario(kip="KIP-890", restarted=True)
def test_t137_a_leader_that_restarts_forgets_the_sequences_it_refused(play: Player) -> None:
    play.needs(ApiKey.ADD_PARTITIONS_TO_TXN, 4)
    x = TransactionalProducer(play)
    p = x.begun()
    assert x.produce(1, p, 0, 0)[0] == 48
    assert x.add(p, 0, 1) == {1: 0}
    assert x.produce(1, p, 0, 5)[0] == 45
    play.crash()
    x.wait_loaded()
    assert x.produce(1, p, 0, 5) == (0, 0)


@scenario(kip="KIP-890")
def test_t145_the_end_of_a_transaction_keeps_the_first_sequence_of_the_next(play: Player) -> None:
    """A marker of version 2 has the epoch of the next transaction, here of one that was refused."""
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.produce(0, p, 0, 0, version=12)[0] == 0
    assert x.produce(0, p, 1, 0, version=12)[0] == 47
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    x.settle()
    assert x.produce(0, p, 1, 0, transactional=False, version=12)[0] == 0
    assert x.produce(0, p, 1, 1, version=12)[0] == 45


@scenario(kip="KIP-98", restarted=True)
def test_t142_a_leader_without_a_follower_remembers_the_last_batch_over_a_restart(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.produce(0, p, 0, 1) == (0, 1)
    assert x.produce(0, p, 0, 0) == (0, 0)
    play.restart()
    x.wait_loaded()
    assert x.produce(0, p, 0, 1) == (0, 1)
    assert x.produce(0, p, 0, 0)[0] == 45


@scenario(kip="KIP-98", restarted=True)
def test_t143_a_restart_raises_the_coordinator_epoch_except_with_zookeeper(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    play.restart()
    x.wait_loaded()
    assert x.add(p, 0, 0) == {0: 0}
    assert x.produce(0, p, 0, 0)[0] == 0
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    assert x.write_markers(p, 0, 0, coordinator_epoch=0) == [52 if play.since("3.0.0") else 0]


@scenario(kip="KIP-98")
def test_t129_one_request_has_the_batches_of_one_producer(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun()
    two = {0: a_batch(p, 0, 0), 1: a_batch(p + 1_000, 0, 0)}
    if play.since("3.6.0"):
        assert x.produce_bytes(two) == {0: (49, -1), 1: (49, -1)}
        error = x.produce_for("", p)
        assert error == 42, f"error {error}"
    else:
        assert x.produce_bytes(two) == {0: (0, 0), 1: (0, 0)}


@scenario(kip="base")
def test_t150_a_marker_of_no_producer_fails_at_partitions_of_the_broker(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    assert [x.write_markers(-1, 0, 9), x.write_markers(-1, 0, 0, topic="nosuch")] == [[3], [3]]
    assert [x.write_markers(-1, 0, 0), x.write_markers(7, -1, 0)] == [[-1], [-1]]
    assert x.write_markers(-1, 0, 0, 0) == [-1]
    nowhere = WritableTxnMarker(producer_id=-1)
    assert play.ask(WriteTxnMarkersRequest(markers=(nowhere,)), 1).answer().markers == ()
    # of several markers of a producer the last one has the rows
    here = WritableTxnMarker(producer_id=-1, topics=(WritableTxnMarkerTopic(name=x.topic, partition_indexes=(0,)),))
    for markers in ((here, nowhere), (nowhere, here)):
        play.ask(WriteTxnMarkersRequest(markers=markers), 1).answer()
    # the first member has the offsets topic created
    play.stable_one()
    of_offsets = x.write_markers(-1, 0, 0, 9999, topic="__consumer_offsets")
    assert of_offsets == ([-1, 3] if play.new else [-1, -1])


@scenario(kip="KIP-98")
def test_t151_markers_whose_results_are_counted_wrongly_are_never_answered(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    known, offsets, nowhere = x.topic, "__consumer_offsets", "nosuch"
    # the first member has the offsets topic created
    play.stable_one()

    def asked(*markers: list[tuple[str, tuple[int, ...]]]) -> PendingRequest[Any]:
        rows = (
            WritableTxnMarker(
                producer_id=p,
                producer_epoch=0,
                topics=tuple(WritableTxnMarkerTopic(name=name, partition_indexes=at) for name, at in topics),
            )
            for topics in markers
        )
        return play.ask(WriteTxnMarkersRequest(markers=tuple(rows)), 1)

    asked([(nowhere, (0, 0))]).answer()
    # the order of topics is that of a hash table
    [row] = asked([(nowhere, (0,))], [(known, (0,))]).unrecorded().markers
    assert {topic.name: topic.partitions[0].error_code for topic in row.topics} == {nowhere: 3, known: 0}
    play.expect_never(asked([(known, (0,))], [(nowhere, (0,))]), asked([(known, (0,))], []))
    of_partition, of_offsets = asked([(known, (0, 0))]), asked([(offsets, (0, 0))])
    if play.since("3.9.0"):
        play.expect_never(of_partition)
    else:
        of_partition.answer()
    if play.since("3.9.0") and not play.since("4.0.0"):
        play.expect_never(of_offsets)
    else:
        of_offsets.answer()
    if not play.since("3.9.0"):
        # later coordinators may write the marker before or after the next one is left out
        play.expect_never(asked([(offsets, (0,))], []))


@scenario(kip="KIP-1228")
def test_t152_a_marker_of_no_transaction_version_is_not_written(play: Player) -> None:
    play.needs(ApiKey.WRITE_TXN_MARKERS, 2)
    x = TransactionalProducer(play)
    p = x.written()
    play.stable_one()
    assert x.write_markers(p, 1, 0, version=2, transaction_version=-1) == [-1]
    assert x.write_markers(p, 1, 0, version=2, transaction_version=-1, topic="__consumer_offsets") == [-1]
    assert x.write_markers(p, 1, 0, version=2, transaction_version=-2) == [0]
