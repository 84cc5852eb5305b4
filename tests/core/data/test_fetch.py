"""Fetch: long polls and limits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from koordinator.emulator.core.timers import CleanLogs
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import BatchHeader, read_batches, read_records
from tests.core.data.conftest import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

T0 = ("t", 0)


@pytest.mark.parametrize("version", range(4, 19))
def test_a_fetch_returns_available_records(desk: Desk, version: int) -> None:
    topic_id = desk.topic("t")
    desk.produce(desk.batch(b"a", b"b"))
    key = (topic_id, 0) if version >= 13 else T0
    row = desk.fetch({key: 0}, version=version).partitions[key]
    assert [r.value for r in desk.records(row.records)] == [b"a", b"b"]
    assert (row.error_code, row.high_watermark, row.last_stable_offset) == (0, 2, 2)


@pytest.mark.parametrize(("version", "magic", "time"), [(0, 0, -1), (1, 0, -1), (2, 1, START), (3, 1, START)])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_kip_283_versions_before_batches_get_messages(
    desk: Desk, version: int, magic: int, time: int, compression: str | None
) -> None:
    desk.topic("t")
    assert desk.fetch({T0: 0}, version=version, max_wait_ms=0).partitions[T0].error_code == 0
    desk.produce(desk.batch(b"a" * 50, b"b" * 50, compression=compression))
    row = desk.fetch({T0: 0}, version=version).partitions[T0]
    messages: list[tuple[BatchHeader, bytes]] = []
    with suppress(Malformed):
        # the beginning of a batch fills the size
        messages.extend(read_batches(row.records))
    assert {header.magic for header, _ in messages} == {magic}
    records = [record for _, message in messages for record in read_records(message)]
    assert [(each.offset, each.timestamp, each.value) for each in records] == [
        (0, time, b"a" * 50),
        (1, time, b"b" * 50),
    ]


def test_kip_283_a_conversion_has_the_size_of_the_batches(desk: Desk) -> None:
    desk.topic("t")
    for _ in range(2):
        desk.produce(desk.batch(*[b""] * 10))
    size = len(desk.fetch({T0: 0}).partitions[T0].records)
    assert len(desk.fetch({T0: 0}, version=3).partitions[T0].records) == max(size, 10 * 34)


def test_kip_110_zstd_cannot_be_converted(desk: Desk) -> None:
    pytest.importorskip("cramjam")
    desk.topic("t")
    desk.produce(desk.batch(b"a", compression="zstd"))
    row = desk.fetch({T0: 0}, version=3).partitions[T0]
    assert (row.error_code, row.records) == (Error.UNSUPPORTED_COMPRESSION_TYPE, b"")


def test_nothing_to_read_is_empty_and_not_null_after_max_wait_and_not_before(desk: Desk) -> None:
    desk.topic("t")
    fetch = desk.fetch({T0: 0}, max_wait_ms=500)
    desk.wait(499)
    assert fetch.parked
    assert desk.data.timers.next_deadline == desk.now + 1
    desk.wait(1)
    assert fetch.partitions[T0].records == b""
    assert desk.data.timers.next_deadline is None


def test_a_fetch_with_max_wait_0_does_not_park(desk: Desk) -> None:
    desk.topic("t")
    assert not desk.fetch({T0: 0}, max_wait_ms=0).parked
    assert not desk.fetch({T0: 0}, min_bytes=0).parked


def test_a_parked_fetch_is_answered_when_records_arrive(desk: Desk) -> None:
    desk.topic("t", 2)
    fetch = desk.fetch({T0: 0, ("t", 1): 0})
    desk.produce(desk.batch(b"a"), partition=1)
    assert [r.value for r in desk.records(fetch.partitions["t", 1].records)] == [b"a"]
    assert fetch.partitions[T0].records == b""
    desk.wait(10_000)
    assert len(fetch.responses) == 1


def test_a_parked_fetch_waits_for_min_bytes_in_all_partitions_together(desk: Desk) -> None:
    desk.topic("t", 2)
    size = len(desk.batch(b"a"))
    fetch = desk.fetch({T0: 0, ("t", 1): 0}, min_bytes=3 * size)
    desk.produce(desk.batch(b"a"))
    desk.produce(desk.batch(b"a"), partition=1)
    assert fetch.parked
    desk.produce(desk.batch(b"a"))
    assert [len(row.records) for row in fetch.partitions.values()] == [2 * size, size]


def test_bytes_beyond_the_limit_of_a_partition_do_not_count(desk: Desk) -> None:
    desk.topic("t", 2)
    size = len(desk.batch(b"a"))
    fetch = desk.fetch({T0: 0, ("t", 1): 0}, min_bytes=2 * size, partition_max_bytes=size)
    for _ in range(3):
        desk.produce(desk.batch(b"a"))
    assert fetch.parked
    desk.produce(desk.batch(b"a"), partition=1)
    assert [len(row.records) for row in fetch.partitions.values()] == [size, size]


def test_a_produce_is_answered_before_the_fetch_it_satisfies(desk: Desk) -> None:
    desk.topic("t")
    order: list[int] = []
    desk.fetch({T0: 0})
    perform = desk._perform
    desk._perform = lambda effects: (order.extend(e.call.api_key for e in effects), perform(effects))  # type: ignore[method-assign,assignment]
    desk.produce(desk.batch(b"a"))
    assert order == [0, 1]


def test_kip_74_the_first_batch_is_returned_whole_whatever_the_limits(desk: Desk) -> None:
    desk.topic("t", 2)
    for partition in (0, 0, 1):
        desk.produce(desk.batch(b"a" * 100), partition=partition)
    rows = desk.fetch({T0: 0, ("t", 1): 0}, max_bytes=1, partition_max_bytes=1).partitions
    assert [len(desk.records(row.records)) for row in rows.values()] == [1, 0]


def test_max_bytes_holds_for_all_partitions_together(desk: Desk) -> None:
    desk.topic("t", 3)
    size = len(desk.batch(b"a"))
    for partition in (0, 0, 1, 1, 2):
        desk.produce(desk.batch(b"a"), partition=partition)
    rows = desk.fetch({("t", p): 0 for p in range(3)}, max_bytes=3 * size).partitions
    assert [len(row.records) for row in rows.values()] == [2 * size, size, 0]


def test_the_brokers_fetch_max_bytes_bounds_the_request(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(fetch_max_bytes=1024)
    desk.topic("t")
    for _ in range(3):
        desk.produce(desk.batch(b"a" * 500))
    assert len(desk.fetch({T0: 0}).partitions[T0].records) == 1024


@pytest.mark.parametrize("offset", [-1, 0, 4])
def test_an_offset_out_of_range_is_1_at_once(desk: Desk, offset: int) -> None:
    desk.topic("t")
    desk.produce(desk.batch(b"a", b"b", b"c"))
    desk.cluster.topics["t"].logs[0].truncate_front(1)
    row = desk.fetch({T0: offset}).partitions[T0]
    assert (row.error_code, row.high_watermark, row.log_start_offset, row.records) == (1, -1, -1, b"")


def test_an_error_in_one_partition_is_answered_at_once_though_others_could_wait(desk: Desk) -> None:
    desk.topic("t", 2)
    rows = desk.fetch({T0: 0, ("t", 1): 7}).partitions
    assert [row.error_code for row in rows.values()] == [0, Error.OFFSET_OUT_OF_RANGE]


def test_a_fetch_never_waits_for_more_than_max_bytes(desk: Desk) -> None:
    desk.topic("t")
    fetch = desk.fetch({T0: 0}, min_bytes=1 << 20, max_bytes=10)
    desk.produce(desk.batch(b"a"))
    assert len(desk.records(fetch.partitions[T0].records)) == 1


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (1, 75), (-2, 0)])
def test_kip_320_a_leader_epoch_of_another_time_is_74_or_75(desk: Desk, epoch: int, error: int) -> None:
    desk.topic("t")
    desk.produce(desk.batch(b"a"))
    assert desk.fetch({T0: 0}, leader_epoch=epoch).partitions[T0].error_code == error


def test_an_unknown_topic_does_not_bring_the_response_forward(desk: Desk) -> None:
    desk.topic("t")
    alone = desk.fetch({("u", 0): 0, ("t", 9): 0})
    assert {row.error_code for row in alone.partitions.values()} == {Error.UNKNOWN_TOPIC_OR_PARTITION}
    beside = desk.fetch({("u", 0): 0, T0: 0}, max_wait_ms=100)
    assert beside.parked
    desk.wait(100)
    assert [row.error_code for row in beside.partitions.values()] == [Error.UNKNOWN_TOPIC_OR_PARTITION, 0]


def test_kip_516_an_unknown_id_is_100_and_an_unknown_partition_of_a_known_one_3(desk: Desk) -> None:
    topic_id = desk.topic("t")
    rows = desk.fetch({(UUID(int=99), 0): 0, (topic_id, 7): 0}, version=13).partitions
    assert [row.error_code for row in rows.values()] == [100, 3]


def test_deleting_a_topic_answers_its_parked_fetches(desk: Desk) -> None:
    topic_id = desk.topic("t")
    desk.topic("u")
    by_name, by_id, other = desk.fetch({T0: 0}), desk.fetch({(topic_id, 0): 0}, version=13), desk.fetch({("u", 0): 0})
    desk.send(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)))
    assert by_name.partitions[T0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.partitions[topic_id, 0].error_code == Error.UNKNOWN_TOPIC_ID
    assert other.parked
    assert desk.deleted == ["t"]


def test_read_committed_gets_an_empty_list_of_aborted_transactions_and_others_null(desk: Desk) -> None:
    desk.topic("t")
    desk.produce(desk.batch(b"a"))
    assert desk.fetch({T0: 0}, isolation_level=1).partitions[T0].aborted_transactions == ()
    assert desk.fetch({T0: 0}).partitions[T0].aborted_transactions is None


def test_a_closed_connection_has_no_parked_fetch(desk: Desk) -> None:
    desk.topic("t")
    gone, there = desk.fetch({T0: 0}, connection=101), desk.fetch({T0: 0}, connection=102)
    desk.data.disconnected(desk.now, 101)
    desk.data.disconnected(desk.now, 103)
    desk.produce(desk.batch(b"a"))
    assert (gone.parked, there.parked) == (True, False)
    assert [key for _, key in desk.data.fetches.timers.pending()] == [CleanLogs()]
    assert not desk.data.fetches.parked
    assert not desk.data.fetches._watchers


def test_a_clock_advance_answers_overdue_requests_first(desk: Desk) -> None:
    desk.topic("t")
    fetch = desk.fetch({T0: 0}, max_wait_ms=10)
    desk.now += 1000
    desk.produce(desk.batch(b"too late"))
    assert fetch.partitions[T0].records == b""


def test_request_fields_have_the_defaults_the_core_relies_on() -> None:
    request = FetchRequest()
    assert (request.max_bytes, request.session_id, request.session_epoch) == (2**31 - 1, 0, -1)


@pytest.mark.parametrize(("release", "rows"), [("2.8", [("t", [0, 1])]), ("4.4", [("t", [0]), ("t", [0, 1])])])
def test_a_fetch_that_fails_repeats_partitions_in_later_releases(
    new_desk: Callable[..., Desk], release: str, rows: list[tuple[str, list[int]]]
) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t", 2)
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = (
        FetchTopic(topic="t", partitions=(place,)),
        FetchTopic(topic="t", partitions=(place, replace(place, partition=1))),
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=2, topics=topics)
    response = desk.send(request, 12).response
    assert response.error_code == -1
    assert [(each.topic, [row.partition_index for row in each.partitions]) for each in response.responses] == rows
