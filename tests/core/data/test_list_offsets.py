"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk


@pytest.fixture
def filled(desk: Desk) -> Desk:
    """Return a desk with offsets 1 to 5 at 200, 300, 250 (compressed), 900, 400; offset 0 is deleted."""
    desk.topic("t")
    desk.produce(desk.batch(b"0", b"1", at=(1000, 200)))
    desk.produce(desk.batch(b"2", b"3", at=(300, 250), compression="gzip"))
    desk.produce(desk.batch(b"4", b"5", at=(900, 400)))
    desk.cluster.topics["t"].logs[0].truncate_front(1)
    return desk


@pytest.mark.parametrize(
    ("timestamp", "result"),
    [
        (-1, (6, -1)),
        (-2, (1, -1)),
        (-3, (0, 1000)),
        (-4, (1, -1)),
        (-5, (-1, -1)),
        (-6, (-1, -1)),
        (0, (1, 200)),
        (200, (1, 200)),
        (201, (2, 300)),
        (301, (4, 900)),
        (901, (-1, -1)),
    ],
)
def test_offsets_by_time_are_exact_to_the_record(filled: Desk, timestamp: int, result: tuple[int, int]) -> None:
    row = filled.offsets(timestamp)
    assert (row.error_code, row.offset, row.timestamp) == (0, *result)
    assert row.leader_epoch == (0 if result[0] >= 0 else -1)


@pytest.mark.parametrize("version", range(1, 12))
def test_ends_and_times_are_known_in_every_version(filled: Desk, version: int) -> None:
    assert [filled.offsets(t, version=version).offset for t in (-1, -2, 201)] == [6, 1, 2]
    assert filled.offsets(-1, version=version).leader_epoch == (0 if version >= 4 else -1)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)])
def test_a_special_timestamp_unknown_to_the_version_is_35(filled: Desk, timestamp: int, since: int) -> None:
    for version in range(1, 12):
        expected = 0 if version >= since else Error.UNSUPPORTED_VERSION
        assert filled.offsets(timestamp, version=version).error_code == expected


@pytest.mark.parametrize("timestamp", [-3, -5, -7])
def test_in_2_8_an_unknown_timestamp_is_before_records_without_a_time(
    new_desk: Callable[..., Desk], timestamp: int
) -> None:
    desk = new_desk(kafka_version="2.8")
    desk.topic("t")
    desk.produce(desk.batch(b"a", at=-1))
    desk.produce(desk.batch(b"b"))
    row = desk.offsets(timestamp, version=5)
    assert (row.error_code, row.offset, row.timestamp) == (0, 0, -1)


def test_version_0_has_a_list_of_offsets(filled: Desk) -> None:
    assert [filled.offsets(t, version=0).old_style_offsets for t in (-1, -2, 901)] == [(6,), (1,), ()]


def test_an_empty_log_has_ends_and_no_times(desk: Desk) -> None:
    desk.topic("t")
    assert [desk.offsets(t).offset for t in (-1, -2, -3, 0)] == [0, 0, -1, -1]


def test_the_greatest_timestamp_of_a_log_expires_with_its_segment(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(log_retention_check_interval_ms=1000)
    desk.topic("t", configs={"retention.ms": "60000"})
    desk.produce(desk.batch(b"a", at=desk.now))
    desk.cluster.topics["t"].logs[0].truncate_front(1)
    assert desk.offsets(-3).offset == 0
    desk.produce(desk.batch(b"b", at=desk.now - 1))
    assert desk.offsets(-3).offset == 0
    desk.wait(62_000)
    assert desk.values() == []
    assert (desk.offsets(-3).offset, desk.offsets(-1).offset) == (-1, 2)


def test_unknown_partitions_are_3_and_unknown_epochs_75(filled: Desk) -> None:
    assert filled.offsets(-1, "u").error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.offsets(-1, partition=1).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.offsets(-1, current_leader_epoch=1).error_code == Error.UNKNOWN_LEADER_EPOCH


def test_a_partition_named_twice_is_42_in_one_row(filled: Desk) -> None:
    twice = (ListOffsetsPartition(partition_index=0, timestamp=-1),) * 2
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name="t", partitions=twice),))
    rows = filled.send(request).response.topics[0].partitions
    assert [row.error_code for row in rows] == [Error.INVALID_REQUEST]


@pytest.mark.parametrize(("release", "rows"), [("2.4", [(0, (0,))]), ("3.9", [(0, (0,))] * 2)])
def test_version_0_looks_up_a_partition_named_twice(
    new_desk: Callable[..., Desk], release: str, rows: list[tuple[int, tuple[int, ...]]]
) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t")
    twice = (ListOffsetsPartition(partition_index=0, timestamp=-1),) * 2
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name="t", partitions=twice),))
    found = desk.send(request, 0).response.topics[0].partitions
    assert [(row.error_code, row.old_style_offsets) for row in found] == rows
    refused = desk.send(request, 1).response.topics[0].partitions
    assert {row.error_code for row in refused} == {Error.INVALID_REQUEST}


@pytest.mark.parametrize("version", range(5))
def test_the_only_epoch_ends_where_the_log_ends(filled: Desk, version: int) -> None:
    sent = tuple(OffsetForLeaderPartition(partition=p, leader_epoch=e) for p, e in ((0, 0), (0, 1), (0, -1), (1, 0)))
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=sent),))
    rows = filled.send(request, version).response.topics[0].partitions
    assert [(row.error_code, row.end_offset) for row in rows] == [(0, 6), (0, -1), (0, -1), (3, -1)]


def test_the_first_epoch_starts_where_the_log_starts(desk: Desk) -> None:
    desk.topic("t")
    log = desk.cluster.topics["t"].logs[0]
    for epoch in (1, 2, 3):
        desk.produce(desk.batch(b"a"))
        log.begin_epoch(epoch)
    for start, ends in ((0, [0, 1, 2, 3]), (1, [1, 1, 2, 3]), (2, [2, 2, 2, 3])):
        log.truncate_front(start)
        assert [log.epoch_end(epoch)[1] for epoch in (-2, 0, 1, 2)] == ends
        assert log.epoch_at(start) == start


def test_kip_320_a_later_epoch_than_the_leaders_is_75(filled: Desk) -> None:
    sent = (OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=3),)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=sent),))
    assert filled.send(request).response.topics[0].partitions[0].error_code == Error.UNKNOWN_LEADER_EPOCH
