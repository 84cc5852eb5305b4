"""A compacted log keeps the last record of each key, at its offset (cleanup.policy=compact)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.core.data.log import COMPACTED_BYTES_MIN, UNCOMPACTED_BYTES, PartitionLog
from koordinator.wire.records import Record, read_batches, read_header, read_records, write_batch

WRITES = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.binary(max_size=4))), max_size=40)


def write(log: PartitionLog, *records: tuple[int, bytes | None]) -> None:
    batch = write_batch([Record(timestamp=7, key=b"%d" % key, value=value) for key, value in records])
    log.append(read_header(batch), batch, 0)


def fill(log: PartitionLog, key: int = 99, size: int = COMPACTED_BYTES_MIN) -> None:
    """Write until the log is compacted and the earlier records are outside its uncompacted tail."""
    before = log._written
    while log._written - before < size:
        write(log, (key, bytes(1_000)))
    log.compact_if_grown()


def read(log: PartitionLog, offset: int) -> list[Record]:
    data = log.read(offset, 1, first_whole=True)
    return [record for _, batch in read_batches(data) for record in read_records(batch)]


@pytest.mark.slow
@given(writes=st.lists(WRITES.filter(bool), min_size=1, max_size=8))
def test_the_last_value_of_each_key_is_there_at_its_offset(writes: list[list[tuple[int, bytes | None]]]) -> None:
    log = PartitionLog()
    last: dict[bytes, tuple[int, bytes | None]] = {}
    for batch in writes:
        for at, (key, value) in enumerate(batch):
            last[b"%d" % key] = (log.end + at, value)
        write(log, *batch)
    end = log.end
    fill(log)
    kept = {record.key: (record.offset, record.value) for record in log.records() if record.offset < end}
    assert kept == {key: result for key, result in last.items() if result[1] is not None}
    assert {record.timestamp for record in log.records()} == {7}


@pytest.mark.slow
@given(writes=st.lists(WRITES.filter(bool), min_size=1, max_size=8))
def test_reading_on_from_any_offset_makes_progress(writes: list[list[tuple[int, bytes | None]]]) -> None:
    log = PartitionLog()
    for batch in writes:
        write(log, *batch)
    fill(log)
    for offset in range(log.end):
        assert log.readable_bytes(offset, 1) > 0
        data = log.read(offset, 1, first_whole=True)
        assert read_header(data).last_offset >= offset, "a client would fetch this offset again and again"
        assert all(record.offset in range(log.end) for record in read(log, offset))


def test_the_last_segment_keeps_its_tombstones() -> None:
    log = PartitionLog()
    fill(log, size=2 * COMPACTED_BYTES_MIN)
    write(log, (1, b"a"), (1, None))
    log.compact_if_grown()
    assert [record.value for record in read(log, log.end - 1)] == [b"a", None]


@pytest.mark.slow
def test_a_log_of_few_keys_stays_small() -> None:
    log = PartitionLog()
    for number in range(20_000):
        write(log, (number % 5, b"x" * 20))
        log.compact_if_grown()
    assert log.end == 20_000
    assert sum(len(batch.data) for batch in log._batches) <= COMPACTED_BYTES_MIN + UNCOMPACTED_BYTES
    assert {record.key for record in log.records()} == {b"%d" % key for key in range(5)}


def test_a_log_without_repeated_keys_is_compacted_only_when_it_doubles() -> None:
    log = PartitionLog()
    for number in range(2_000):
        write(log, (number, b"x" * 20))
        log.compact_if_grown()
    assert [record.offset for record in log.records()] == list(range(2_000))
    assert log._compact_at >= log._written
