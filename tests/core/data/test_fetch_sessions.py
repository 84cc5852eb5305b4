"""Fetch sessions: only changes of the partitions that a client has named (KIP-227)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.core.data.fetch_sessions import EVICTION_MS
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk, Exchange

T0 = ("t", 0)


def _open(desk: Desk, wanted: dict[Any, int], **fields: Any) -> tuple[int, Exchange]:
    exchange = desk.fetch(wanted, epoch=0, max_wait_ms=0, **fields)
    assert exchange.response.error_code == 0
    return exchange.response.session_id, exchange


def test_kip_227_a_session_returns_only_changes(desk: Desk) -> None:
    desk.topic("t", 3)
    session, first = _open(desk, {("t", p): 0 for p in range(3)})
    assert session > 0
    assert len(first.partitions) == 3
    idle = desk.fetch({}, session_id=session, epoch=1)
    desk.wait(500)
    assert (idle.partitions, idle.response.session_id) == ({}, session)
    desk.produce(desk.batch(b"a"), partition=1)
    assert list(desk.fetch({}, session_id=session, epoch=2).partitions) == [("t", 1)]


def test_kip_227_an_incremental_fetch_moves_positions_adds_and_forgets_partitions(desk: Desk) -> None:
    desk.topic("t", 3)
    session, _ = _open(desk, {("t", 0): 0, ("t", 1): 0})
    for partition in range(3):
        desk.produce(desk.batch(b"a"), partition=partition)
    exchange = desk.fetch({("t", 2): 0, ("t", 0): 1}, session_id=session, epoch=1, forget=[("t", 1)])
    # partition 0 has nothing to read at its new position, but a new high watermark
    assert list(exchange.partitions) == [("t", 0), ("t", 2)]
    assert [len(row.records) > 0 for row in exchange.partitions.values()] == [False, True]


def test_kip_227_a_session_without_partitions_ends(desk: Desk) -> None:
    desk.topic("t")
    session, _ = _open(desk, {T0: 0})
    last = desk.fetch({}, session_id=session, epoch=1, forget=[T0])
    assert (last.response.session_id, last.response.error_code) == (0, 0)
    assert desk.fetch({}, session_id=session, epoch=2).response.error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_kip_227_an_unknown_session_is_70_and_a_wrong_epoch_71(desk: Desk) -> None:
    desk.topic("t")
    session, _ = _open(desk, {T0: 0})
    unknown = desk.fetch({T0: 0}, session_id=session + 1, epoch=1).response
    assert (unknown.error_code, unknown.session_id, unknown.responses) == (Error.FETCH_SESSION_ID_NOT_FOUND, 0, ())
    for epoch in (2, 7):
        assert desk.fetch({}, session_id=session, epoch=epoch).response.error_code == Error.INVALID_FETCH_SESSION_EPOCH
    assert desk.fetch({}, session_id=session, epoch=1, max_wait_ms=0).response.error_code == 0


def test_kip_227_a_full_fetch_closes_the_session_it_names(desk: Desk) -> None:
    desk.topic("t")
    for epoch in (-1, 0):
        session, _ = _open(desk, {T0: 0})
        desk.fetch({T0: 0}, session_id=session, epoch=epoch, max_wait_ms=0)
        assert desk.fetch({}, session_id=session, epoch=1).response.error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_kip_227_a_fetch_overtaken_by_the_next_of_its_session_is_71(desk: Desk) -> None:
    desk.topic("t")
    session, _ = _open(desk, {T0: 0})
    slow = desk.fetch({}, session_id=session, epoch=1)
    next_ = desk.fetch({}, session_id=session, epoch=2)
    desk.produce(desk.batch(b"a"))
    assert slow.response.error_code == Error.INVALID_FETCH_SESSION_EPOCH
    assert list(next_.partitions) == [T0]


def test_kip_227_a_failing_partition_is_always_included_and_once_more_after_recovery(desk: Desk) -> None:
    desk.topic("t")
    session, _ = _open(desk, {T0: 0, ("t", 1): 0})
    for epoch in (1, 2):
        again = desk.fetch({}, session_id=session, epoch=epoch, max_wait_ms=0)
        assert [(k, r.error_code) for k, r in again.partitions.items()] == [(("t", 1), 3)]
    desk.send(CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=2, assignments=None),)))
    well = desk.fetch({}, session_id=session, epoch=3, max_wait_ms=0)
    assert [(k, r.error_code) for k, r in well.partitions.items()] == [(("t", 1), 0)]


def test_kip_227_a_partition_that_was_read_goes_to_the_end_of_the_line(desk: Desk) -> None:
    desk.topic("t", 2)
    for partition in (0, 0, 1):
        desk.produce(desk.batch(b"a"), partition=partition)
    # the answer that opens the session moves nothing
    session, first = _open(desk, {T0: 0, ("t", 1): 0}, max_bytes=1)
    assert [len(row.records) > 0 for row in first.partitions.values()] == [True, False]
    assert list(desk.fetch({T0: 1}, session_id=session, epoch=1, max_bytes=1).partitions) == [T0]
    assert list(desk.fetch({}, session_id=session, epoch=2, max_bytes=1).partitions) == [("t", 1)]


@pytest.mark.parametrize(("release", "first"), [("2.8", ("t", 0)), ("3.9", ("t", 1))])
def test_since_3_0_partitions_without_records_keep_their_place(
    new_desk: Callable[..., Desk], release: str, first: tuple[str, int]
) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t", 2)
    # 1 fails until it has records, and is before 0
    session, _ = _open(desk, {("t", 1): 1, T0: 0}, max_bytes=1)
    assert [row.error_code for row in desk.fetch({}, session_id=session, epoch=1).partitions.values()] == [1]
    for partition in (0, 1, 1):
        desk.produce(desk.batch(b"a"), partition=partition)
    read = desk.fetch({}, session_id=session, epoch=2, max_bytes=1).partitions
    assert [key for key, row in read.items() if row.records] == [first]


def test_kip_516_a_session_cannot_change_from_names_to_ids(desk: Desk) -> None:
    desk.topic("t")
    session, _ = _open(desk, {T0: 0})
    answer = desk.fetch({}, session_id=session, epoch=1, version=13).response
    assert answer.error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR


def test_kip_516_a_session_meets_another_topic_of_the_name(desk: Desk) -> None:
    first = desk.topic("t")
    session, _ = _open(desk, {(first, 0): 0}, version=13)
    desk.send(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)))
    gone = desk.fetch({}, session_id=session, epoch=1, version=13, max_wait_ms=0)
    assert gone.partitions[first, 0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    desk.topic("t")
    # at once: a session that has an error does not wait
    other = desk.fetch({}, session_id=session, epoch=2, version=13)
    assert other.partitions[first, 0].error_code == Error.INCONSISTENT_TOPIC_ID
    alone = desk.fetch({(first, 0): 0}, version=13, max_wait_ms=0)
    assert alone.partitions[first, 0].error_code == Error.UNKNOWN_TOPIC_ID


def test_kip_227_only_a_long_unused_session_makes_room(
    new_desk: Callable[..., Desk],
) -> None:
    desk = new_desk(max_incremental_fetch_session_cache_slots=2)
    desk.topic("t")
    (a, _), (b, _) = _open(desk, {T0: 0}), _open(desk, {T0: 0})
    assert _open(desk, {T0: 0})[0] == 0
    desk.wait(EVICTION_MS)
    desk.fetch({}, session_id=a, epoch=1, max_wait_ms=0)
    assert _open(desk, {T0: 0})[0] == 0
    desk.wait(1)
    assert _open(desk, {T0: 0})[0] > 0
    assert desk.fetch({}, session_id=b, epoch=1).response.error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    assert desk.fetch({}, session_id=a, epoch=2, max_wait_ms=0).response.error_code == 0


def test_kip_227_without_slots_there_are_no_sessions(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(max_incremental_fetch_session_cache_slots=0)
    desk.topic("t")
    assert _open(desk, {T0: 0})[0] == 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(0, 3), st.integers(1, 300)),
        st.tuples(st.just("fetch"), st.integers(1, 400), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3), st.integers(0, 3)),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_a_fetch_session_is_equivalent_to_full_fetches(new_desk: Callable[..., Desk], steps: Any) -> None:
    """A client that follows a session knows of each partition what a full fetch would return."""
    desk = new_desk()
    desk.topic("t", 4)
    positions = {("t", p): 0 for p in range(4)}
    session, first = _open(desk, positions)
    known = dict(first.partitions)
    moved: dict[tuple[str, int], int] = {}
    epoch = 0
    for step, a, b in steps:
        if step == "produce":
            desk.produce(desk.batch(b"x" * b), partition=a)
        elif step == "delete":
            log = desk.cluster.topics["t"].logs[a]
            log.truncate_front(min(log.start + b, log.end))
        else:
            epoch += 1
            news = desk.fetch(moved, session_id=session, epoch=epoch, max_wait_ms=0, max_bytes=a).partitions
            moved = {}
            full = desk.fetch(positions, max_wait_ms=0, max_bytes=1 << 20).partitions
            known.update(news)
            for key, row in full.items():
                assert (known[key].error_code, known[key].high_watermark, known[key].log_start_offset) == (
                    row.error_code,
                    row.high_watermark,
                    row.log_start_offset,
                )
                if key in news and news[key].records:
                    assert row.records.startswith(news[key].records)
                    positions[key] = moved[key] = desk.records(news[key].records)[-1].offset + 1
                elif row.error_code:
                    positions[key] = moved[key] = desk.cluster.topics["t"].logs[key[1]].start
            if any(row.records for row in full.values()):
                assert any(row.records for row in news.values()), "a fetch that could bring something brings something"


def test_a_session_may_not_go_back_to_a_version_without_diverging_epochs(desk: Desk) -> None:
    desk.topic("t")
    place = FetchPartition(partition=0, fetch_offset=9, partition_max_bytes=1, last_fetched_epoch=0)
    opening = FetchRequest(
        max_wait_ms=0, min_bytes=0, session_epoch=0, topics=(FetchTopic(topic="t", partitions=(place,)),)
    )
    first = desk.send(opening, 12).response
    later = desk.send(replace(opening, session_id=first.session_id, session_epoch=1, topics=()), 11).response
    assert (first.error_code, later.error_code, later.responses) == (0, Error.UNSUPPORTED_VERSION, ())
