"""Timeouts and expiry of transactions, restarts, records, and the lists for administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario
from scenarios.transactional import TransactionalProducer

from koordinator.wire.messages.describe_transactions import DescribeTransactionsRequest
from koordinator.wire.messages.list_transactions import ListTransactionsRequest

if TYPE_CHECKING:
    from scenarios.player import Player

LIMIT_S = 20


def ms(play: Player, seconds: float) -> int:
    """Return scenario seconds in the broker's ms."""
    return round(seconds * play.target.scale * 1000)


def until_aborted(play: Player, x: TransactionalProducer, p: int) -> None:
    """Wait until the broker has aborted the transaction of epoch 0."""
    play.zero()
    with x.waiting():
        while x.add(p, 0, 0)[0] in {0, 51}:
            assert play.seconds < LIMIT_S, "the transaction is still open"
            play.wait(0.2)


def listed(
    play: Player, *producers: TransactionalProducer, version: int = 0, **filters: object
) -> tuple[set[str], object]:
    """ListTransactions: those of these ids that are listed, and the unknown states of the filter."""
    answer = play.ask(ListTransactionsRequest(**filters), version).unrecorded()
    rows = {row.transactional_id for row in answer.transaction_states}
    return rows & {each.id for each in producers}, answer.unknown_state_filters


@scenario(kip="KIP-98", abort_interval=1)
def test_t110_after_a_timeout_the_old_protocol_is_fenced(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written(timeout_ms=ms(play, 2))
    until_aborted(play, x, p)
    x.settle_abort()
    assert [x.add(p, 0, 0)[0], x.add(p, 0, 0, version=1)[0], x.add_offsets(p, 0)] == [90, 47, 90]
    assert [x.end(p, 0, commit=True), x.end(p, 0, commit=False), x.end(p, 0, commit=True, version=1)] == [90, 90, 47]
    assert [x.produce(0, p, 0, 1)[0], x.produce(0, p, 0, 1, version=7)[0]] == [47, 47]
    assert x.commit_offsets(p, 0, 5) == (47 if play.since("3.7.0") else 0)
    x.expect("CompleteAbort", 1)
    assert x.fetch(0, 1)[2] == [(p, 0)]


@scenario(kip="KIP-890", abort_interval=1)
def test_t111_after_a_timeout_version_5_may_abort(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written(timeout_ms=ms(play, 2))
    until_aborted(play, x, p)
    x.settle_abort()
    assert [x.end5(p, 0, commit=True)[0], x.end5(p, 0, commit=False)] == [48, (0, p, 1)]
    assert x.produce(0, p, 0, 1, version=12)[0] == 47
    assert x.commit_offsets(p, 0, 5, version=5) == 47


@scenario(kip="KIP-98", abort_interval=1)
def test_t113_an_id_without_a_transaction_does_not_time_out(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized(timeout_ms=ms(play, 1))
    play.wait(3)
    x.expect("Empty", 0)
    assert x.add(p, 0, 0) == {0: 0}


@scenario(kip="KIP-98", abort_interval=1)
def test_t114_neither_adds_nor_records_extend_a_transaction(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.begun(timeout_ms=ms(play, 4))
    play.zero()
    play.wait(3)
    assert x.add(p, 0, 1) == {1: 0}
    assert x.produce(1, p, 0, 0)[0] == 0
    with x.waiting():
        while x.add(p, 0, 0)[0] in {0, 51}:
            play.wait(0.2)
    assert 3 < play.seconds < 6.5


@scenario(kip="KIP-98", id_expiration=3, producer_expiration=3)
def test_t116_idle_ids_expire_and_open_transactions_do_not(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    p, q = x.initialized(), y.begun()
    play.zero()
    with x.waiting():
        while x.end(p, 0, commit=True) != 49:
            # nothing has begun: 48, which writes nothing
            assert play.seconds < LIMIT_S
            play.wait(0.2)
    assert play.seconds > 2
    if play.since("3.0.0"):
        assert listed(play, x, y)[0] == {y.id}
        (row,) = play.ask(DescribeTransactionsRequest(transactional_ids=(x.id,)), 0).answer().transaction_states
        assert (row.error_code, row.transaction_state, row.producer_id) == (105, "", 0)
    assert x.add(p, 0, 0) == {0: 49}
    error, new, epoch = x.init(p, 0)
    assert (error, epoch, new not in {p, q}) == (0, 0, True)


@scenario(kip="KIP-98", restarted=True)
def test_t117_a_restart_keeps_transactions_offsets_and_records(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.written()
    assert x.add_offsets(p, 0) == 0
    assert x.commit_offsets(p, 0, 77) == 0
    before = x.described()
    play.reload()
    x.wait_loaded()
    assert x.described() == before
    assert x.offset(stable=True) == (88, -1)
    assert x.produce(0, p, 0, 1)[0] == 0
    with x.waiting():
        # only a broker has another leader epoch after the restart
        assert x.latest(1) == (0, 0)
    assert x.end(p, 0, commit=True) == 0
    x.settle()
    assert x.stable_offsets(0) == {0: (0, 77)}
    with x.waiting():
        assert x.latest(1) == (0, 3)


@scenario(kip="KIP-664")
def test_t119_transactions_are_listed_by_state_and_producer(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    x.initialized()
    q = y.begun()
    assert listed(play, x, y, state_filters=("Ongoing", "Bogus")) == ({y.id}, ("Bogus",))
    assert listed(play, x, y, state_filters=("ongoing",)) == (set(), ("ongoing",))
    assert listed(play, x, y, producer_id_filters=(q,)) == ({y.id}, ())
    assert listed(play, x, y, state_filters=("Empty",), producer_id_filters=(q,)) == (set(), ())


@scenario(kip="KIP-994")
def test_t120_an_id_that_never_had_a_transaction_counts_as_old(play: Player) -> None:
    x, y = TransactionalProducer(play), TransactionalProducer(play, "y")
    x.initialized()
    y.begun()
    play.wait(0.5)
    found = [listed(play, y, version=1, duration_filter=duration)[0] for duration in (-1, 0, 100_000)]
    assert found == [{y.id}, {y.id}, set()]
    assert listed(play, x, version=1, duration_filter=3_600_000)[0] == {x.id}


@scenario(kip="KIP-1152")
def test_t121_a_pattern_matches_the_whole_id(play: Player) -> None:
    x = TransactionalProducer(play)
    x.initialized()
    found = [
        listed(play, x, version=2, transactional_id_pattern=pattern)[0]
        for pattern in (None, "", f"{play.g}.*", play.g, ".*nosuch")
    ]
    assert found == [{x.id}, {x.id}, {x.id}, set(), set()]
    answer = play.ask(ListTransactionsRequest(transactional_id_pattern="("), 2).answer()
    assert answer.error_code == 128


@scenario(kip="KIP-854", id_expiration=3, producer_expiration=3)
def test_t068_idle_producers_are_forgotten(play: Player) -> None:
    x = TransactionalProducer(play)
    x.create_topic()
    _, i, _ = x.init(tid=None)
    assert x.produce(0, i, 0, 0, transactional=False, tid=None)[0] == 0
    play.wait(5)
    assert x.producers().active_producers == ()
    assert x.produce(0, i, 0, 7, transactional=False, tid=None)[0] == 0
