"""Transactions in a partition's log: sequences, markers, the last stable offset, aborted transactions."""

from __future__ import annotations

import pytest

from koordinator.emulator.core.data.log import PartitionLog
from koordinator.wire.control_records import Marker, read_marker, write_marker
from koordinator.wire.errors import Error
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import Record, read_header, write_batch


class Log:
    """A partition's log with the leader's checks; `P` and `Q` are producer ids."""

    def __init__(self) -> None:
        self.log = PartitionLog()
        self.log.begin_epoch(0)

    def write(
        self, producer_id: int, epoch: int, sequence: int, *, transactional: bool = True, first: bool = False
    ) -> int | Error:
        """Write one record; return its offset or the error. `first` stands for transaction version 2."""
        batch = write_batch(
            [Record(timestamp=1, value=b"v")],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        header = read_header(batch)
        producers = self.log.producers
        if producer_id < 0:
            return self.log.append(header, batch, 0)
        duplicate = producers.duplicate(header)
        if duplicate is not None:
            return duplicate.base_offset
        refusal = producers.refuse(header, starts_at_0=first)
        if refusal is not None:
            return refusal.error
        offset = self.log.append(header, batch, 0)
        producers.appended(header, offset)
        return offset

    def end(
        self, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0, strict: bool = False
    ) -> Error:
        """Write a marker; return the error."""
        error = self.log.producers.refuse_marker(producer_id, epoch, coordinator_epoch, strict=strict)
        if error is Error.NONE:
            batch = write_marker(
                Marker(commit, coordinator_epoch), producer_id=producer_id, producer_epoch=epoch, timestamp=2
            )
            header = read_header(batch)
            self.log.producers.appended(header, self.log.append(header, batch, 0), batch)
        return error

    def committed(self, offset: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Read committed records; return the offsets of the batches and the aborted transactions."""
        limit = self.log.last_stable_offset
        data = self.log.read(offset, 1_000_000, first_whole=True, before=limit)
        offsets = []
        while data:
            header = read_header(data)
            offsets.append(header.base_offset)
            data = data[header.size :]
        aborted = self.log.producers.aborted(offset, offsets[-1] + 1 if offsets else offset)
        return offsets, [(each.producer_id, each.first_offset) for each in aborted]


P, Q = 7, 8


@pytest.fixture
def log() -> Log:
    """Return an empty log."""
    return Log()


def test_a_marker_has_kafkas_bytes() -> None:
    batch = write_marker(Marker(is_commit=True, coordinator_epoch=0), producer_id=P, producer_epoch=3, timestamp=9)
    header = read_header(batch)
    assert (header.attributes, header.base_sequence, header.producer_epoch) == (0x30, -1, 3)
    assert read_marker(batch) == Marker(is_commit=True, coordinator_epoch=0)
    assert b"\x00\x00\x00\x01" in batch
    assert batch.endswith(bytes.fromhex("0c 000000000000 00".replace(" ", "")))


@pytest.mark.parametrize("key", [None, b"\0\0", b"\0\0\0\2"])
def test_a_control_batch_that_is_no_marker_is_malformed(key: bytes | None) -> None:
    batch = write_batch([Record(key=key, value=b"\0" * 6)], producer_id=P, is_transactional=True, is_control=True)
    with pytest.raises(Malformed):
        read_marker(batch)


def test_the_last_stable_offset_is_that_of_the_first_open_transaction(log: Log) -> None:
    log.write(-1, -1, -1, transactional=False)
    log.write(P, 0, 0)
    log.write(P, 0, 1)
    log.write(-1, -1, -1, transactional=False)
    assert (log.log.end, log.log.last_stable_offset) == (4, 1)
    assert log.committed(0) == ([0], [])
    assert log.committed(1) == ([], [])


def test_aborted_transactions_are_listed_in_the_order_of_their_markers(log: Log) -> None:
    for _ in range(5):
        log.write(-1, -1, -1, transactional=False)
    assert [log.write(P, 0, 0), log.write(Q, 0, 0)] == [5, 6]
    log.end(Q, 0, commit=False)
    assert log.log.last_stable_offset == 5
    log.end(P, 0, commit=False)
    assert log.log.last_stable_offset == log.log.end == 9
    for offset in (0, 6, 7):
        assert log.committed(offset)[1] == [(Q, 6), (P, 5)]
    assert log.committed(8)[1] == [(P, 5)]


def test_a_short_log_lists_transactions_that_were_aborted_behind_the_read(log: Log) -> None:
    for _ in range(100):
        log.write(-1, -1, -1, transactional=False)
    log.write(P, 0, 0)
    first, batch = 68, len(log.log.read(0, 1, first_whole=True))
    # the index has an entry after more than 4 KiB
    assert log.log.upper_bound(0, batch) == 4_096 // batch + 1 < first
    assert log.log.upper_bound(first, batch) == log.log.end


def test_only_a_transactional_batch_ends_a_verification(log: Log) -> None:
    header = read_header(
        write_batch([Record(value=b"v")], producer_id=P, producer_epoch=0, base_sequence=0, is_transactional=True)
    )
    log.log.producers.begin_verification(header)
    assert log.write(P, 0, 0, transactional=False) == 0
    assert log.write(P, 0, 1) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_leader_does_not_know_the_sequences_that_the_last_one_refused(log: Log) -> None:
    header = read_header(
        write_batch([Record(value=b"v")], producer_id=P, producer_epoch=0, base_sequence=0, is_transactional=True)
    )
    log.log.producers.begin_verification(header)
    assert log.write(P, 0, 5) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.log.begin_epoch(1)
    assert log.write(P, 0, 5) == 0


def test_the_first_request_decides_whether_an_unknown_producer_starts_at_0(log: Log) -> None:
    for first in (True, False):
        for epoch, sequence in ((0, 0), (1, 5)):
            header = read_header(
                write_batch(
                    [Record()],
                    producer_id=P + first,
                    producer_epoch=epoch,
                    base_sequence=sequence,
                    is_transactional=True,
                )
            )
            log.log.producers.begin_verification(header, starts_at_0=first is (epoch == 0))
    assert log.write(P, 1, 5, first=True) == 0
    assert log.write(P + 1, 1, 5) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.write(P + 1, 1, 0) == 1


def test_a_committed_transaction_is_not_listed(log: Log) -> None:
    log.write(P, 0, 0)
    log.end(P, 0, commit=True)
    assert log.committed(0) == ([0, 1], [])


def test_sequences_go_on_after_a_marker_of_the_same_epoch(log: Log) -> None:
    assert log.write(P, 0, 0) == 0
    log.end(P, 0, commit=True)
    assert log.write(P, 0, 1) == 2
    log.end(P, 0, commit=True)
    assert log.write(P, 0, 0) == 0, "a duplicate of an earlier transaction"
    assert log.write(P, 0, 3) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_start_again_after_a_marker_of_a_higher_epoch(log: Log) -> None:
    log.write(P, 0, 0, first=True)
    log.end(P, 1, commit=True, strict=True)
    assert log.write(P, 0, 1) is Error.INVALID_PRODUCER_EPOCH
    assert log.write(P, 1, 2) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.write(P, 1, 0) == 2


def test_an_unknown_producer_starts_anywhere_but_not_with_transaction_version_2(log: Log) -> None:
    assert log.write(P, 0, 5, first=True) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.write(P, 0, 5) == 0


def test_a_batch_outside_the_open_transaction_is_refused(log: Log) -> None:
    log.write(P, 0, 0)
    assert log.write(P, 0, 1, transactional=False) is Error.INVALID_TXN_STATE


def test_after_a_refused_first_batch_nothing_above_it_is_taken(log: Log) -> None:
    log.log.producers.begin_verification(
        read_header(write_batch([Record()], producer_id=P, producer_epoch=0, base_sequence=3, is_transactional=True))
    )
    assert log.write(P, 0, 4) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.write(P, 0, 4, transactional=False) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [log.write(P, 0, 3), log.write(P, 0, 4)] == [0, 1]


def test_markers_are_fenced_by_epoch_and_coordinator(log: Log) -> None:
    log.write(P, 2, 0)
    assert log.end(P, 1, commit=False) is Error.INVALID_PRODUCER_EPOCH
    assert [log.end(P, 2, commit=False), log.end(P, 2, commit=False, coordinator_epoch=5)] == [Error.NONE] * 2
    assert log.end(P, 2, commit=False) is Error.TRANSACTION_COORDINATOR_FENCED


def test_a_strict_marker_needs_a_higher_epoch_while_the_transaction_is_open(log: Log) -> None:
    log.write(P, 0, 0)
    assert log.end(P, 0, commit=True, strict=True) is Error.INVALID_PRODUCER_EPOCH
    assert [log.end(P, 1, commit=True, strict=True), log.end(P, 1, commit=True, strict=True)] == [Error.NONE] * 2


def test_a_marker_where_nothing_was_written_makes_the_producer_known(log: Log) -> None:
    log.end(P, 1, commit=True)
    (producer,) = log.log.producers
    assert (producer.epoch, producer.last_sequence, producer.coordinator_epoch, producer.open_since) == (1, -1, 0, -1)
    assert log.log.last_stable_offset == log.log.end == 1


def test_a_restored_log_has_the_same_open_and_ended_transactions(log: Log) -> None:
    log.write(P, 0, 0)
    log.write(Q, 0, 0)
    log.end(Q, 0, commit=False)
    restored = PartitionLog()
    data = log.log.read(0, 1_000_000, first_whole=True)
    while data:
        header = read_header(data)
        restored.restore(header, data[: header.size])
        data = data[header.size :]
    assert restored.last_stable_offset == 0
    assert restored.producers.aborted(0, 3) == log.log.producers.aborted(0, 3) != []


def test_idle_producers_expire_and_open_transactions_do_not(log: Log) -> None:
    log.write(P, 0, 0, transactional=False)
    log.write(Q, 0, 0)
    producers = log.log.producers
    producers.expire(before_ms=0)
    assert [producer.id for producer in producers] == [P, Q]
    producers.expire(before_ms=1)
    assert [producer.id for producer in producers] == [Q]
    assert log.write(P, 0, 7, transactional=False) == 2
