"""A partition's log returns every record exactly once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.core.data.log import PartitionLog
from koordinator.wire.records import Record, read_header, read_records, whole_batches, write_batch

RECORDS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1, max_size=4)
BATCHES = st.lists(RECORDS, min_size=1, max_size=12)


def _log(batches: list[list[tuple[int, int]]]) -> PartitionLog:
    log = PartitionLog()
    for records in batches:
        batch = write_batch([Record(timestamp=time, value=b"v" * size) for time, size in records])
        log.append(read_header(batch), batch, 0)
    return log


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(batches=BATCHES, bytes_max=st.integers(0, 400), cut=st.integers(0, 48))
def test_reading_on_returns_every_record_once(batches: Any, bytes_max: int, cut: int) -> None:
    log = _log(batches)
    log.truncate_front(min(cut, log.end))
    offsets: list[int] = []
    position = log.start
    while position < log.end:
        data = log.read(position, bytes_max, first_whole=True)
        headers = [header for header, _ in whole_batches(data)]
        assert len(headers) == 1 or len(data) <= bytes_max
        assert headers[0].base_offset <= position <= headers[0].last_offset
        assert log.end_of(headers[0].base_offset, len(data)) == headers[-1].last_offset + 1
        offsets += [r.offset for _, b in whole_batches(data) for r in read_records(b) if r.offset >= position]
        position = headers[-1].last_offset + 1
    assert offsets == list(range(log.start, log.end))
    assert [r.offset for r in log.records()] == offsets
    assert log.read(log.end, bytes_max, first_whole=True) == b""


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(batches=BATCHES, bytes_max=st.integers(0, 400), start=st.integers(0, 47))
def test_a_read_fills_its_size_but_does_not_cut_the_first_batch(batches: Any, bytes_max: int, start: int) -> None:
    log = _log(batches)
    start = min(start, log.end - 1)
    everything = log.read(start, 1 << 30, first_whole=False)
    sizes = [header.size for header, _ in whole_batches(everything)]
    cut = everything[:bytes_max]
    assert log.read(start, bytes_max, first_whole=False) == (cut if bytes_max >= sizes[0] else b"")
    assert log.read(start, bytes_max, first_whole=True) == everything[: max(bytes_max, sizes[0])]
    assert log.readable_bytes(start, bytes_max) == max(sizes[0], min(sum(sizes), bytes_max))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(batches=BATCHES, more=BATCHES, time=st.integers(-1, 52), cut=st.integers(0, 48))
def test_a_look_up_by_time_finds_the_first_record_at_or_after_it(batches: Any, more: Any, time: int, cut: int) -> None:
    log = _log(batches)
    log.first_at_or_after(time)
    deleted = list(log.records())
    log.truncate_front(min(cut, log.end))
    deleted = [record for record in deleted if record.offset < log.start]
    log.first_at_or_after(time)
    for records in more:
        batch = write_batch([Record(timestamp=t, value=b"v" * size) for t, size in records])
        log.append(read_header(batch), batch, 0)
    there = list(log.records())
    assert log.first_at_or_after(time) == next(((r.offset, r.timestamp) for r in there if r.timestamp >= time), None)
    in_segment = deleted + there
    greatest = max(r.timestamp for r in in_segment)
    assert log.max_timestamp_record() == next((r.offset, r.timestamp) for r in in_segment if r.timestamp == greatest)


def test_the_greatest_timestamp_goes_with_its_segment() -> None:
    log = _log([[(9, 1)], [(7, 1)], [(8, 1), (5, 1)], [(6, 1)]])
    size = len(log.read(0, 1, first_whole=True))
    assert [segment.start for segment in log.segments(2 * size, 1000)] == [0, 2, 4]
    found = []
    for start in range(1, log.end + 1):
        log.truncate_front(start)
        found.append(log.max_timestamp_record())
    assert found == [(0, 9), (2, 8), (2, 8), (4, 6), (4, 6)]


def test_a_log_whose_last_segment_has_expired_has_no_greatest_timestamp() -> None:
    log = _log([[(9, 1)]])
    log.roll()
    log.roll()
    log.truncate_front(1)
    assert log.max_timestamp_record() is None


def test_a_batch_that_cannot_be_opened_is_found_by_its_header() -> None:
    log = _log([[(1, 1)]])
    batch = bytearray(write_batch([Record(timestamp=5, value=b"a"), Record(timestamp=9, value=b"b")]))
    batch[61] = 0xFF
    log.append(read_header(bytes(batch)), bytes(batch), 0)
    assert log.first_at_or_after(6) == (1, 9)
    assert log.first_at_or_after(10) is None


def test_an_empty_log_has_nothing() -> None:
    log = PartitionLog()
    assert (log.start, log.end, log.readable_bytes(0, 10), log.read(0, 10, first_whole=True)) == (0, 0, 0, b"")
    assert log.first_at_or_after(0) is None
    assert log.max_timestamp_record() is None


def test_the_start_never_moves_back_nor_beyond_the_end() -> None:
    log = _log([[(1, 1), (2, 1)]])
    log.truncate_front(1)
    log.truncate_front(0)
    assert log.start == 1
    with pytest.raises(AssertionError):
        log.truncate_front(3)
