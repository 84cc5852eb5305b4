"""A failed write to `__transaction_state` loses nothing: later answers equal those of a twin that never tried.

Each row of `ROWS`, `BUMPING` and `DRAWING` is a request that writes; changes that come by time have a test each. A test
asserts that all of them write every change of `TransactionCause`, so a new one needs a row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from scenes.planted_bugs import planted
from scenes.transaction_play import TransactionPlay

from koordinator.emulator.core.transactions.coordinator import TransactionCoordinator
from koordinator.emulator.core.transactions.transaction import EPOCH_MAX
from koordinator.emulator.core.transactions.transitions import TransactionCause
from koordinator.wire.errors import Error
from koordinator.wire.messages.list_transactions import ListTransactionsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

FAILURE = Error.NOT_ENOUGH_REPLICAS

EXPIRY_MS = 120_000
SETTINGS = {
    "transactional_id_expiration_ms": EXPIRY_MS,
    "transaction_remove_expired_transaction_cleanup_interval_ms": 10_000,
}
VARIANTS = [("2.4", 1), ("2.8", 1), ("3.9", 1), ("4.4", 1), ("4.4", 2)]
"""Releases and transaction versions."""

UNTIL_MS, EVERY_MS = 260_000, 20_000
"""Longer than a transaction's timeout of 60 s, and then an expiry."""


def nothing(play: TransactionPlay) -> None:
    """There is no transactional id."""


def empty(play: TransactionPlay) -> None:
    """`x` has a producer, and never had a transaction."""
    play.init()


def ongoing(play: TransactionPlay) -> None:
    """`x` has an open transaction."""
    play.begun()


def committed(play: TransactionPlay) -> None:
    """`x` has committed a transaction."""
    play.begun()
    _end(play, commit=True)


def aborted(play: TransactionPlay) -> None:
    """`x` has aborted a transaction."""
    play.begun()
    _end(play, commit=False)


def exhausted(play: TransactionPlay) -> None:
    """`x` has an open transaction with the last epoch that a producer gets."""
    play.begun()
    transaction = play.coordinator.store.transactions["x"]
    transaction.data = replace(transaction.data, epoch=EPOCH_MAX - 1)


def exhausted_empty(play: TransactionPlay) -> None:
    """`x` has no transaction, and the last epoch that a producer gets."""
    play.init()
    transaction = play.coordinator.store.transactions["x"]
    transaction.data = replace(transaction.data, epoch=EPOCH_MAX - 1)


def _identity(play: TransactionPlay) -> tuple[int, int]:
    row = play.describe()
    return row.producer_id, row.producer_epoch


def _end_version(play: TransactionPlay) -> int:
    return 5 if play.coordinator.store.transaction_version >= 2 else 3


def _end(play: TransactionPlay, *, commit: bool) -> Any:
    return play.end(*_identity(play), commit=commit, version=_end_version(play))


def _init(play: TransactionPlay) -> Any:
    return play.init()


def _resume(play: TransactionPlay) -> Any:
    return play.init(*_identity(play))


def _add(play: TransactionPlay) -> Any:
    return play.add(*_identity(play), ("t", 1))


def _add_offsets(play: TransactionPlay) -> Any:
    return play.add_offsets(*_identity(play))


def _commit(play: TransactionPlay) -> Any:
    return _end(play, commit=True)


def _abort(play: TransactionPlay) -> Any:
    return _end(play, commit=False)


def _operator_aborts(play: TransactionPlay) -> None:
    play._take(play.coordinator.abort(play.now, "x", TransactionCause.OPERATOR))


QUIET: dict[str, Callable[[TransactionPlay], Any]] = {
    "a producer is initialized": _init,
    "a producer resumes": _resume,
    "partitions are added": _add,
    "offsets are added": _add_offsets,
}

ROWS: dict[Callable[[TransactionPlay], None], dict[str, Callable[[TransactionPlay], Any]]] = {
    empty: QUIET,
    committed: QUIET,
    aborted: QUIET,
    ongoing: {
        "partitions are added": _add,
        "offsets are added": _add_offsets,
        "the transaction commits": _commit,
        "the transaction aborts": _abort,
    },
}
"""The requests that write, by the state of the transactional id."""

BUMPING: dict[Callable[[TransactionPlay], None], dict[str, Callable[[TransactionPlay], Any]]] = {
    empty: {"an empty transaction aborts": _abort},
    committed: {"an empty transaction aborts": _abort},
    ongoing: {"another producer fences": _init, "an operator aborts": _operator_aborts},
}
"""The same for transaction version 2 alone; before, a fence keeps its epoch (`test_a_failed_fence_is_…`)."""

DRAWING: dict[Callable[[TransactionPlay], None], dict[str, Callable[[TransactionPlay], Any]]] = {
    exhausted_empty: {"a producer gets a new id": _init},
    exhausted: {"the transaction commits": _commit, "the transaction aborts": _abort},
}
"""Requests that draw a producer id, which a failed write wastes, from transaction version 2 on."""


def rows() -> list[Any]:
    return [
        pytest.param(scene, attempt, variant, id=f"{scene.__name__}: {name}, {variant[0]} at {variant[1]}")
        for variant in VARIANTS
        for table in (ROWS, BUMPING, DRAWING)
        if table is ROWS or variant[1] == 2
        for scene, attempts in table.items()
        for name, attempt in attempts.items()
    ]


def twins(scene: Callable[[TransactionPlay], None], variant: tuple[str, int]) -> tuple[TransactionPlay, ...]:
    release, level = variant
    pair = tuple(TransactionPlay(kafka_version=release, transaction_version=level, **SETTINGS) for _ in range(2))
    for play in pair:
        scene(play)
    return pair


def fail(play: TransactionPlay, attempt: Callable[[TransactionPlay], Any]) -> list[Any]:
    """Make a request whose writes fail; return the changes that were not written."""
    play.writes, mark = None, len(play.records)
    attempt(play)
    changes = [each.change for each in play.coordinator.store.writes.values()]
    while play.kept_writes:
        play.complete_write(FAILURE)
    play.writes = Error.NONE
    assert len(play.records) - mark == len(changes)
    return changes


def look(play: TransactionPlay) -> list[Any]:
    return [play.describe(), play.send(ListTransactionsRequest(), 0)]


def later(play: TransactionPlay, mark: tuple[int, int]) -> list[Any]:
    """Return the records and the sent markers since a mark, without their tokens."""
    records, sent = mark
    return [
        [(each.transactional_id, each.record) for each in play.records[records:]],
        [each.request for each in play.sent[sent:]],
    ]


def assert_twins(tried: TransactionPlay, twin: TransactionPlay, again: Callable[[TransactionPlay], Any] = look) -> None:
    marks = [(len(play.records), len(play.sent)) for play in (tried, twin)]
    assert look(tried) == look(twin)
    assert again(tried) == again(twin)
    for _ in range(0, UNTIL_MS, EVERY_MS):
        for play in (tried, twin):
            play.advance(EVERY_MS)
        assert look(tried) == look(twin), f"{tried.now - 1_700_000_000_000} ms"
    assert later(tried, marks[0]) == later(twin, marks[1])


def play_twins(scene: Any, attempt: Any, variant: tuple[str, int]) -> tuple[TransactionPlay, ...]:
    tried, twin = twins(scene, variant)
    assert fail(tried, attempt)
    if scene in DRAWING:
        twin.cluster.producer_ids.next_id()
    return tried, twin


@pytest.mark.parametrize(("scene", "attempt", "variant"), rows())
def test_after_a_failed_write_a_transactional_id_equals_its_twin(
    scene: Any, attempt: Any, variant: tuple[str, int]
) -> None:
    assert_twins(*play_twins(scene, attempt, variant))


@pytest.mark.parametrize(("scene", "attempt", "variant"), rows())
def test_a_transactional_request_is_repeated_after_a_failed_write_as_if_it_were_the_first(
    scene: Any, attempt: Any, variant: tuple[str, int]
) -> None:
    assert_twins(*play_twins(scene, attempt, variant), attempt)


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "attempt", "variant"), [row for row in rows() if row.values[2] == ("4.4", 2)])
def test_after_a_bug_at_any_moment_a_transactional_id_equals_its_twin(
    scene: Any, attempt: Any, variant: tuple[str, int]
) -> None:
    twin = twins(scene, variant)[0]
    expected, answer = look(twin), attempt(twin)
    serve = TransactionCoordinator.handle
    for moment, tried in planted(lambda: twins(scene, variant)[0], attempt, 25, serve):
        records = len(tried.records)
        assert look(tried) == expected, moment
        assert len(tried.records) == records, moment
        if scene not in DRAWING:
            assert attempt(tried) == answer, moment


def _failing(play: TransactionPlay, attempt: Callable[[TransactionPlay], Any]) -> list[TransactionCause]:
    return [change.cause for change in fail(play, attempt)]


def _without_times(play: TransactionPlay) -> list[Any]:
    return [
        replace(each.record, transaction_last_update_timestamp_ms=0) if each.record is not None else None
        for each in play.records
    ]


def timeout_fails(variant: tuple[str, int]) -> tuple[TransactionPlay, TransactionPlay, list[TransactionCause]]:
    tried, twin = twins(ongoing, variant)
    failed = _failing(tried, lambda play: play.advance(61_000))
    return tried, twin, failed


def expiry_fails(variant: tuple[str, int]) -> tuple[TransactionPlay, TransactionPlay, list[TransactionCause]]:
    tried, twin = twins(empty, variant)
    failed = _failing(tried, lambda play: play.advance(130_000))
    return tried, twin, failed


def completion_fails(variant: tuple[str, int]) -> tuple[TransactionPlay, TransactionPlay, list[TransactionCause]]:
    tried, twin = twins(ongoing, variant)
    for play in (tried, twin):
        play.markers = None
        _commit(play)
    failed = _failing(tried, TransactionPlay.answer_markers)
    twin.answer_markers()
    for play in (tried, twin):
        play.markers = Error.NONE
    return tried, twin, failed


# 2.4 raises the epoch with each try
@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_a_transaction_whose_abort_is_not_written_times_out_at_the_next_check(variant: tuple[str, int]) -> None:
    tried, twin, failed = timeout_fails(variant)
    assert failed == [TransactionCause.TIMED_OUT]
    twin.advance(61_000)
    assert (tried.state, twin.state) == ("Ongoing", "CompleteAbort")
    for play in (tried, twin):
        play.advance(1_000)
    assert look(tried) == look(twin)
    del tried.records[-3]
    assert _without_times(tried) == _without_times(twin)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_id_whose_tombstone_is_not_written_expires_at_the_next_check(variant: tuple[str, int]) -> None:
    tried, twin, failed = expiry_fails(variant)
    assert failed == [TransactionCause.EXPIRED]
    twin.advance(130_000)
    assert (tried.state, twin.state) == ("Empty", "")
    for play in (tried, twin):
        play.advance(10_000)
    assert look(tried) == look(twin)
    assert [each.record for each in tried.records[-2:]] == [None, None]


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_id_that_is_busy_while_others_expire_is_checked_again(variant: tuple[str, int]) -> None:
    tried, _ = twins(empty, variant)
    tried.advance(119_000)
    fail(tried, lambda play: (_init(play), play.advance(11_000)))
    assert tried.state == "Empty"
    tried.advance(10_000)
    assert tried.state == ""


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_completion_that_is_not_written_is_repeated_with_its_time(variant: tuple[str, int]) -> None:
    tried, twin, failed = completion_fails(variant)
    assert failed == [TransactionCause.MARKERS_WRITTEN]
    assert (tried.state, twin.state) == ("PrepareCommit", "CompleteCommit")
    for play in (tried, twin):
        play.advance(1_000)
    assert look(tried) == look(twin)
    assert tried.records[-1].record == tried.records[-2].record == twin.records[-1].record


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_completed_transaction_has_the_time_of_its_first_markers(variant: tuple[str, int]) -> None:
    (play, _) = twins(ongoing, variant)
    play.markers = None
    decided = play.now
    _commit(play)
    play.advance(5_000)
    play.answer_markers()
    record = play.records[-1].record
    assert play.state == "CompleteCommit"
    assert record is not None
    assert record.transaction_last_update_timestamp_ms == decided


FENCES = [_init, _operator_aborts, lambda play: play.advance(61_000)]


@pytest.mark.parametrize("fence", FENCES, ids=["init", "operator", "timeout"])
@pytest.mark.parametrize(("release", "raised"), [("2.4", 3), ("2.8", 1), ("3.9", 1), ("4.4", 1)])
def test_a_failed_fence_keeps_its_epoch_and_raises_it_once(release: str, raised: int, fence: Any) -> None:
    tried, twin = twins(ongoing, (release, 1))
    for failures in (1, 2):
        assert fail(tried, fence if failures == 1 or fence is not FENCES[2] else lambda play: play.advance(1_000))
        # the producer is fenced already
        assert tried.add(0, 0, ("t", 1)) == {("t", 1): Error.PRODUCER_FENCED}
        assert (tried.state, tried.describe().producer_epoch) == ("Ongoing", failures if release == "2.4" else 1)
    for play in (tried, twin):
        _init(play)
    assert (tried.describe().producer_epoch, twin.describe().producer_epoch) == (raised, 1)
    # the flag ends with the transaction
    for play in (tried, twin):
        identity = play.init_until_served()
        play.add(identity[1], identity[2], ("t", 0))
        _init(play)
    assert (tried.describe().producer_epoch, twin.describe().producer_epoch) == (raised + 2, 3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_new_transactional_id_stays_known_without_an_epoch(variant: tuple[str, int]) -> None:
    tried, twin = twins(nothing, variant)
    assert fail(tried, _init)
    assert (tried.state, tried.describe().producer_epoch, twin.state) == ("Empty", -1, "")
    assert tried.init() == twin.init()
    assert look(tried) == look(twin)
    assert tried.records[-1].record == twin.records[-1].record


def test_every_change_of_a_transactional_id_has_a_failed_write() -> None:
    failed = {
        cause
        for table in (ROWS, BUMPING, DRAWING)
        for scene, attempts in table.items()
        for attempt in attempts.values()
        for cause in _failing(twins(scene, ("4.4", 2))[0], attempt)
    }
    for by_time in (timeout_fails, expiry_fails, completion_fails):
        failed |= set(by_time(("4.4", 2))[2])
    assert failed == set(TransactionCause)
