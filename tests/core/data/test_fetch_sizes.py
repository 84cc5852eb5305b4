"""The sizes of a fetch: limits that cut a batch, and messages for old clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.wire.control_records import Marker, write_marker
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.records import read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

T0 = ("t", 0)


def test_the_end_of_a_fetch_may_cut_a_batch(desk: Desk) -> None:
    desk.topic("t")
    for _ in range(2):
        desk.produce(desk.batch(b"a" * 100))
    everything = desk.fetch({T0: 0}).partitions[T0].records
    row = desk.fetch({T0: 0}, max_bytes=len(everything) - 1).partitions[T0]
    assert row.records == everything[:-1]
    assert [record.offset for record in desk.records(row.records)] == [0]


def test_a_row_whose_first_batch_is_cut_has_no_aborted_transactions(desk: Desk) -> None:
    desk.topic("t", 2)
    for partition in (0, 1):
        desk.produce(desk.batch(b"a"), partition=partition)
    size = len(desk.fetch({T0: 0}).partitions[T0].records)
    for left, expected in ((0, ()), (1, None), (size, ())):
        rows = desk.fetch({T0: 0, ("t", 1): 0}, max_bytes=size + left, isolation_level=1).partitions
        assert rows["t", 1].aborted_transactions == expected


def test_a_marker_alone_is_the_beginning_of_a_message_to_old_clients(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="3.9")
    desk.topic("t")
    batch = write_marker(Marker(is_commit=True, coordinator_epoch=0), producer_id=7, producer_epoch=0, timestamp=9)
    desk.cluster.topics["t"].logs[0].append(read_header(batch), batch, 0)
    assert len(desk.fetch({T0: 0}, version=3).partitions[T0].records) == 12
    assert len(desk.fetch({T0: 0}, version=12).partitions[T0].records) == len(batch)


def test_before_version_3_a_first_batch_that_is_cut_is_left_out(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="3.9")
    desk.topic("t")
    desk.produce(desk.batch(b"a"))
    found = [desk.fetch({T0: 0}, version=each, partition_max_bytes=1).partitions[T0].records for each in (2, 3)]
    assert [bool(records) for records in found] == [False, True]


def test_a_negative_max_bytes_fails_the_first_partition_only(desk: Desk) -> None:
    desk.topic("t", 2)
    for partition in (0, 1):
        desk.produce(desk.batch(b"a"), partition=partition)
    rows = desk.fetch({T0: 0, ("t", 1): 0}, max_bytes=-1).partitions
    assert rows[T0].error_code == Error.UNKNOWN_SERVER_ERROR
    assert rows["t", 1].error_code == 0
    assert len(rows["t", 1].records) > 0


@pytest.mark.parametrize(("release", "records"), [("2.8", b""), ("3.9", None)])
def test_zstd_has_no_records_for_old_clients(
    new_desk: Callable[..., Desk], release: str, records: bytes | None
) -> None:
    pytest.importorskip("cramjam")
    desk = new_desk(kafka_version=release)
    desk.topic("t")
    desk.produce(desk.batch(b"a", compression="zstd"))
    row = desk.fetch({T0: 0}, version=3).partitions[T0]
    assert (row.error_code, row.records) == (Error.UNSUPPORTED_COMPRESSION_TYPE, records)


@pytest.mark.parametrize(("release", "version", "size"), [("2.8", 0, 60), ("2.8", 2, 60), ("3.9", 2, 0)])
def test_2_8_returns_the_beginning_of_a_batch_to_old_clients(
    new_desk: Callable[..., Desk], release: str, version: int, size: int
) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t")
    desk.produce(desk.batch(b"a" * 66))
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=60)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic="t", partitions=(place,)),))
    records = desk.send(request, version).response.responses[0].partitions[0].records
    stored = desk.fetch({T0: 0}, version=4).partitions[T0].records
    assert len(records) == size
    assert stored.startswith(records)
