"""The rules of a share partition: acquisition, acknowledgement, locks, and the offsets between which it works."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordinator.emulator.core.data.share.acquisition import Limits, Read
from koordinator.emulator.core.data.share.batches import Acquired, RecordState, StateBatch, without
from koordinator.emulator.core.data.share.in_flight import InvalidStateError
from koordinator.emulator.core.data.share.partition import Acknowledgement, SharePartition, StateWrite
from koordinator.emulator.core.refusal import RefusedError

LIMITS = Limits(5, 2000, 30_000)


class Desk:
    """A log of some batches and a share partition that reads it; writes succeed at once."""

    def __init__(self, *sizes: int, stored: tuple[StateBatch, ...] = (), limits: Limits = LIMITS) -> None:
        self.log: list[tuple[int, int]] = []
        self.produce(*sizes)
        self.partition = SharePartition(0, 1, stored)
        self.limits = limits
        self.now = 0
        self.writes: list[StateWrite] = []

    def produce(self, *sizes: int) -> None:
        for size in sizes:
            first = self.log[-1][1] + 1 if self.log else 0
            self.log.append((first, first + size - 1))

    def fetch(
        self,
        member_id: str = "A",
        records: int = 500,
        batch_size: int = 500,
        *,
        exact: bool = False,
        aborted: tuple[tuple[int, int], ...] = (),
        begin: int = 0,
    ) -> str:
        """Fetch, and return what was acquired, as `0-9x1 10x2`; `begin` is the start of the log."""
        offset = self.partition.next_fetch_offset
        if not self.partition.can_acquire(self.limits):
            return "full"
        if offset < begin:
            self.partition.truncate(begin)
            return "deleted"
        batches = [each for each in self.log if each[1] >= offset]
        read = Read(offset, batches, records, batch_size, exact, aborted)
        return shown(self.partition.acquire(self.now, member_id, read, self.limits))

    def acknowledge(self, *texts: str, member_id: str = "A") -> str:
        """Acknowledge `0-4=1` or `0-1=1,2`, and return the text of the error."""
        try:
            write = self.partition.acknowledge(self.now, member_id, [acknowledgement(t) for t in texts], self.limits)
        except RefusedError as refused:
            return f"{refused.error.value} {refused}"
        self.written(write)
        return "ok"

    def release(self, member_id: str = "A") -> None:
        self.written(self.partition.release(member_id, self.limits))

    def wait(self, ms: int) -> None:
        self.now += ms
        self.written(self.partition.expire(self.now, self.limits))

    def written(self, write: StateWrite | None, *, succeeds: bool = True) -> None:
        if write is not None:
            self.writes.append(write)
            self.partition.complete(write, is_written=succeeds)

    @property
    def last_write(self) -> str:
        """The last write, as `start,count: 0-4/2/1`."""
        write = self.writes[-1]
        return f"{write.start},{write.complete_count}: " + " ".join(
            f"{_range(each.first, each.last)}/{each.state}/{each.count}" for each in write.batches
        )


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def shown(rows: list[Acquired]) -> str:
    return " ".join(f"{_range(row.first, row.last)}x{row.count}" for row in rows)


def acknowledgement(text: str) -> Acknowledgement:
    offsets, _, types = text.partition("=")
    first, _, last = offsets.partition("-")
    return Acknowledgement(int(first), int(last or first), [int(each) for each in types.split(",")])


# -- acquisition


def test_kip_932_whole_batches_of_the_log_are_acquired() -> None:
    desk = Desk(10, 10, 10)
    assert [desk.fetch(records=n) for n in (1, 5, 500)] == ["0-9x1", "10-19x1", "20-29x1"]
    assert Desk(10, 10, 10).fetch(records=12) == "0-19x1"


@pytest.mark.parametrize(
    ("batch_size", "rows"),
    [(4, "0-9x1 10-19x1 20-29x1"), (15, "0-19x1 20-29x1"), (500, "0-29x1"), (0, "0--1x1 0-9x1 10-19x1 20-29x1")],
)
def test_kip_932_new_records_are_cut_at_batches_of_the_log_once_the_batch_size_is_reached(
    batch_size: int, rows: str
) -> None:
    assert Desk(10, 10, 10).fetch(batch_size=batch_size) == rows


def test_h311_a_negative_batch_size_begins_again_with_batches_of_the_log_before_the_new_records() -> None:
    desk = Desk(10, 10, 10)
    desk.fetch(records=20)
    desk.release()
    assert desk.fetch(batch_size=-1) == "0-19x2 20-19x1 20-29x1"
    desk = Desk(10, 10, 10)
    desk.fetch(records=10)
    desk.release()
    assert desk.fetch(batch_size=-(1 << 31)) == "0-9x2 10--1x1 0-9x1 10-19x1 20-29x1"


def test_kip_932_batches_in_flight_keep_their_boundaries() -> None:
    desk = Desk(10, 10, 10)
    assert desk.fetch() == "0-29x1"
    desk.release()
    assert desk.fetch(batch_size=4) == "0-29x2"
    desk = Desk(10, 10, 10)
    desk.fetch(batch_size=4)
    desk.release()
    assert desk.fetch() == "0-9x2 10-19x2 20-29x2"


def test_kip_1206_exact_mode_acquires_no_more_than_wanted() -> None:
    desk = Desk(10, 10, 10)
    assert [desk.fetch(records=n, exact=True) for n in (3, 9, 9, 100)] == [
        "0-2x1",
        "3-9x1 10-11x1",
        "12-19x1 20x1",
        "21-29x1",
    ]


def test_kip_932_no_records_wanted_is_none_acquired() -> None:
    desk = Desk(5)
    assert [desk.fetch(records=n) for n in (0, -1)] == ["", ""]
    assert desk.partition.in_flight == 0


def test_kip_932_at_the_limit_of_records_in_flight_only_available_ones_between_are_acquired() -> None:
    desk = Desk(60, 60, 60, limits=Limits(5, 100, 30_000))
    assert desk.fetch() == "0-119x1"
    assert desk.fetch() == "full"
    desk.acknowledge("30-59=1")
    assert desk.fetch() == "full"
    desk.acknowledge("70-79=2")
    assert desk.fetch() == "70-79x2"
    desk.acknowledge("0-29=1")
    assert desk.fetch() == "120-179x1"


def test_kip_932_records_that_fail_again_and_again_are_delivered_in_ever_smaller_parts() -> None:
    desk = Desk(8)
    deliveries = []
    for _ in range(12):
        deliveries.append(desk.fetch())
        desk.release()
    assert deliveries == [
        *("0-7x1", "0-7x2", "0-7x3", "0-3x4", "0x5", "1x5", "2x5", "3x5", "4-7x4", "4x5", "5x5", "6x5")
    ]
    states = [(each.first, each.state, each.count) for batch in desk.partition.batches for each in batch.deliveries]
    assert states[-2:] == [(6, RecordState.ARCHIVED, 5), (7, RecordState.AVAILABLE, 4)]


def test_kip_932_the_last_delivery_of_a_record_comes_alone() -> None:
    desk = Desk(8)
    assert desk.fetch(records=1, exact=True) == "0x1"
    for rows in ("1-7x1", "1-7x2", "1-7x3", "1-4x4"):
        assert desk.fetch("B") == rows
        desk.release("B")
    desk.release("A")
    assert [desk.fetch(), desk.fetch()] == ["0x2", "1x5"]


def test_kip_932_a_limit_of_two_deliveries_is_not_throttled() -> None:
    desk = Desk(8, 1, limits=Limits(2, 2000, 30_000))
    desk.fetch(records=8)
    desk.release()
    assert desk.fetch(records=8) == "0-7x2"
    desk.release()
    assert desk.fetch() == "8x1"


def test_kip_932_a_throttled_batch_ends_a_fetch_that_has_acquired_something() -> None:
    desk = Desk(4, 4)
    for _ in range(3):
        desk.fetch(records=1)
        desk.release()
    desk.partition.acknowledge(0, "A", [], LIMITS)
    desk.fetch(records=1)
    assert desk.fetch(records=4) == "2-3x4"


def test_kip_932_batches_of_aborted_transactions_are_archived_when_they_are_acquired() -> None:
    desk = Desk(3, 1, 2, 1, 2, 1, 1)
    assert desk.fetch(aborted=((4, 5),)) == "0-3x1 6-10x1"
    assert desk.acknowledge("0-3=1") == "ok"
    assert (desk.last_write, desk.partition.start) == ("0,6: 0/2/1 1/2/1 2/2/1 3/2/1", 6)
    assert desk.acknowledge("4-5=1") == "ok"
    assert desk.acknowledge("6-10=0,1,1,0,1") == "ok"
    assert desk.last_write == "6,5: 6/4/1 7/2/1 8/2/1 9/4/1 10/2/1"


def test_kip_932_aborted_batches_among_several_rows_have_none_of_their_own() -> None:
    desk = Desk(3, 2, 2, 3)
    assert desk.fetch(batch_size=1, aborted=((0, 2), (5, 6))) == "3-4x1 7-9x1"
    desk = Desk(3, 2, 2, 3)
    assert desk.fetch(batch_size=1, aborted=((3, 4),)) == "0-2x1 5-6x1 7-9x1"


def test_aborted_batches_are_left_out_in_one_pass() -> None:
    looks = 0

    class Range(tuple[int, int]):
        __slots__ = ()

        def __getitem__(self, index: Any) -> Any:
            nonlocal looks
            looks += 1
            return super().__getitem__(index)

    rows = [Acquired(at, at, 1) for at in range(1_000)]
    assert without(rows, [Range((at, at)) for at in range(0, 1_000, 2)]) == rows[1::2]
    assert looks < 6 * len(rows)


def test_kip_932_at_the_limit_of_records_in_flight_no_records_after_them_are_acquired() -> None:
    desk = Desk(60, 60, 60, limits=Limits(5, 100, 30_000))
    desk.fetch()
    desk.acknowledge("70-79=2")
    # the log is compacted up to here
    desk.log = [(120, 179)]
    assert [desk.fetch(), desk.fetch()] == ["", "full"]
    assert [(batch.first, batch.last) for batch in desk.partition.batches] == [(0, 119)]


# -- the start of the log


def test_kip_932_after_records_were_deleted_the_whole_first_batch_of_the_log_is_acquired() -> None:
    desk = Desk(5, 5, 5)
    assert desk.fetch(records=5) == "0-4x1"
    assert desk.partition.next_fetch_offset == 5
    assert desk.fetch(begin=8) == "deleted"
    assert (desk.partition.start, desk.partition.end) == (8, 8)
    assert desk.fetch(begin=8) == "5-14x1"
    assert desk.acknowledge("0-4=1") == "ok"
    assert len(desk.writes) == 0


def test_kip_932_available_records_before_the_start_of_the_log_are_archived() -> None:
    desk = Desk(5, 5, 5)
    desk.fetch()
    desk.release()
    assert [desk.fetch(begin=8) for _ in range(3)] == ["deleted", "8-14x2", ""]


def test_deleted_records_that_are_held_are_archived_when_their_lock_expires() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.partition.truncate(4)
    desk.wait(30_000)
    assert desk.last_write == "4,0: " + " ".join([f"{n}/4/1" for n in range(4)] + [f"{n}/0/1" for n in range(4, 10)])
    assert desk.fetch() == "4-9x2"


def test_finished_records_before_the_start_of_the_log_no_longer_count() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.acknowledge("2-5=1")
    assert desk.partition.complete_count == 4
    desk.partition.truncate(4)
    assert desk.partition.complete_count == 2


def test_an_empty_share_partition_begins_at_the_start_of_the_log() -> None:
    desk = Desk(5)
    desk.partition.truncate(3)
    desk.partition.truncate(2)
    assert (desk.partition.start, desk.partition.end, desk.partition.next_fetch_offset) == (3, 3, 3)
    assert desk.fetch() == "3-4x1"


def test_available_records_that_the_log_has_no_more_are_archived() -> None:
    desk = Desk(5, 5)
    desk.fetch()
    desk.release()
    desk.log = [(7, 9)]
    assert desk.fetch() == "7-9x2"
    desk.acknowledge("7-9=1")
    assert (desk.partition.start, desk.partition.in_flight) == (10, 0)


def test_available_records_that_the_log_has_no_more_are_archived_even_if_nothing_else_is_acquired() -> None:
    desk = Desk(5, 5)
    desk.fetch(batch_size=1)
    desk.acknowledge("0-4=2")
    desk.log = [(5, 9)]
    assert (desk.fetch(), desk.partition.next_fetch_offset) == ("", 10)
    desk.acknowledge("5-9=1")
    assert (desk.partition.start, desk.partition.in_flight) == (10, 0)


def test_kip_932_acknowledgements_pass_over_whole_batches_before_the_start_of_the_log() -> None:
    desk = Desk(5, 5)
    desk.fetch(batch_size=1)
    desk.partition.truncate(5)
    assert desk.acknowledge("0-9=1") == "ok"
    assert desk.last_write == "5,5: 5-9/2/1"


def test_kip_932_the_start_offset_does_not_move_while_deleted_records_are_held() -> None:
    desk = Desk(5, 5, 5)
    desk.fetch(batch_size=1)
    desk.partition.truncate(5)
    write = desk.partition.acknowledge(0, "A", [acknowledgement("5-9=1")], LIMITS)
    assert write is not None
    assert not desk.partition.complete(write, is_written=True)
    assert (desk.partition.start, desk.partition.end, len(desk.partition.batches)) == (5, 14, 3)
    desk.wait(30_000)
    assert (desk.partition.start, desk.partition.end, len(desk.partition.batches)) == (10, 14, 1)


# -- acknowledgement


def test_kip_932_the_stored_start_offset_is_one_write_behind() -> None:
    desk = Desk(10, 5)
    assert desk.fetch(batch_size=1) == "0-9x1 10-14x1"
    desk = Desk(15)
    desk.fetch()
    desk.acknowledge("0-4=1")
    assert desk.last_write == "0,5: 0/2/1 1/2/1 2/2/1 3/2/1 4/2/1"
    desk.acknowledge("5-9=2")
    assert desk.last_write == "5,0: 5/0/1 6/0/1 7/0/1 8/0/1 9/0/1"
    desk.acknowledge("10-14=0,1,2,3,1")
    assert desk.last_write == "5,4: 10/4/1 11/2/1 12/0/1 13/4/1 14/2/1"


def test_kip_932_a_batch_is_stored_as_one_state() -> None:
    desk = Desk(5, 5)
    desk.fetch(batch_size=1)
    desk.acknowledge("0-9=1")
    assert desk.last_write == "0,10: 0-4/2/1 5-9/2/1"
    assert (desk.partition.start, desk.partition.end, desk.partition.complete_count) == (10, 10, 0)


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["5-20=1"], "42 Batch record not found. The last offset in request is past acquired records."),
        (["30-31=1"], "42 Batch record not found. The first offset in request is past acquired records."),
        (["0-1=1", "7-30=1"], "42 Batch record not found. The last offset in request is past acquired records."),
    ],
)
def test_kip_932_acknowledgements_of_what_is_not_in_flight_are_refused_and_nothing_is_changed(
    texts: list[str], error: str
) -> None:
    desk = Desk(5, 5)
    desk.fetch()
    assert desk.acknowledge(*texts) == error
    assert desk.writes == []
    assert desk.acknowledge("0-9=1") == "ok"


def test_kip_932_a_record_is_acknowledged_once_and_by_its_holder() -> None:
    desk = Desk(10)
    assert (
        desk.acknowledge("0=1") == "121 Batch record not found. The request batch offsets are not found in the cache."
    )
    desk.fetch()
    assert desk.acknowledge("0-9=1", member_id="B") == "121 Member is not the owner of batch record"
    assert desk.acknowledge("6=1") == "ok"
    assert desk.acknowledge("6=1") == "121 The offset cannot be acknowledged. The offset is not acquired."
    assert desk.acknowledge("7=1", member_id="B") == "121 Member is not the owner of offset"
    desk.release()
    assert desk.acknowledge("5=1") == "121 The offset cannot be acknowledged. The offset is not acquired."
    desk = Desk(10)
    desk.fetch()
    desk.release()
    assert desk.acknowledge("0-9=1") == "121 The batch cannot be acknowledged. The batch is not in the acquired state."


def test_kip_932_late_acknowledgements_of_finished_records_succeed() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.acknowledge("0-9=1")
    assert desk.acknowledge("0-9=1") == "ok"
    assert len(desk.writes) == 1


def test_acknowledgements_pass_over_finished_offsets() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.acknowledge("0-4=1")
    assert desk.acknowledge("2-6=1") == "ok"
    assert desk.last_write == "5,2: 5/2/1 6/2/1"


def test_acknowledgements_that_begin_before_all_that_is_in_flight_are_about_what_is() -> None:
    desk = Desk(5, 5)
    desk.fetch(batch_size=1)
    desk.acknowledge("0-4=1")
    assert desk.acknowledge("0-9=1") == "ok"
    assert desk.last_write == "5,5: 5-9/2/1"


def test_kip_932_released_records_keep_their_count_and_the_last_delivery_is_archived() -> None:
    desk = Desk(2, limits=Limits(2, 2000, 30_000))
    desk.fetch()
    desk.acknowledge("0-1=2")
    assert desk.last_write == "0,0: 0-1/0/1"
    assert desk.fetch() == "0-1x2"
    desk.acknowledge("0-1=2")
    assert desk.last_write == "0,2: 0-1/4/2"


def test_kip_932_records_are_in_transition_until_the_write_is_done() -> None:
    desk = Desk(10)
    desk.fetch()
    write = desk.partition.acknowledge(0, "A", [acknowledgement("0-9=2")], LIMITS)
    assert write is not None
    assert desk.fetch() == ""
    assert desk.acknowledge("0-9=1") == "121 The batch cannot be acknowledged. The batch is not in the acquired state."
    desk.partition.complete(write, is_written=True)
    assert desk.fetch() == "0-9x2"


def test_kip_932_after_a_failed_write_the_member_holds_the_records_again() -> None:
    desk = Desk(10)
    desk.fetch()
    write = desk.partition.acknowledge(0, "A", [acknowledgement("0-9=1")], LIMITS)
    assert desk.partition.complete_count == 10
    desk.written(write, succeeds=False)
    assert (desk.partition.complete_count, desk.partition.start) == (0, 0)
    assert desk.acknowledge("0-9=1") == "ok"


def test_kip_932_after_a_failed_write_records_with_an_expired_lock_are_available() -> None:
    desk = Desk(10)
    desk.fetch()
    write = desk.partition.acknowledge(0, "A", [acknowledgement("0-9=1")], LIMITS)
    desk.wait(30_000)
    desk.written(write, succeeds=False)
    assert desk.fetch("B") == "0-9x2"


# -- locks


def test_kip_932_expired_locks_release_records() -> None:
    desk = Desk(8)
    desk.fetch()
    assert desk.partition.locks.deadline == 30_000
    desk.wait(29_999)
    assert desk.writes == []
    desk.wait(1)
    assert desk.last_write == "0,0: 0-7/0/1"
    assert desk.partition.locks.deadline is None
    assert desk.acknowledge("0=1") == "121 The batch cannot be acknowledged. The batch is not in the acquired state."
    assert desk.fetch("B") == "0-7x2"


def test_kip_1222_renewed_locks_begin_anew_for_these_records_alone() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.acknowledge("0=1")
    desk.wait(20_000)
    assert desk.acknowledge("1-4=4,1,2,4") == "ok"
    assert desk.last_write == "1,1: 2/2/1 3/0/1"
    desk.wait(10_000)
    assert desk.last_write == "1,1: " + " ".join(f"{n}/0/1" for n in range(5, 10))
    assert desk.partition.locks.deadline == 50_000
    desk.wait(20_000)
    assert desk.last_write == "1,1: 1/0/1 4/0/1"


def test_kip_1222_a_whole_batch_is_renewed_without_a_write() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.wait(20_000)
    assert desk.acknowledge("0-9=4") == "ok"
    assert (desk.writes, desk.partition.locks.deadline) == ([], 50_000)


def test_kip_1222_renewals_are_refused_if_the_group_does_not_allow_them() -> None:
    desk = Desk(10, limits=replace(LIMITS, renews=False))
    desk.fetch()
    assert desk.acknowledge("0-9=4") == "121 Renewing acquisition locks is not enabled for the group."
    assert desk.acknowledge("0-4=4") == "121 Renewing acquisition locks is not enabled for the group."


def test_locks_of_finished_records_end() -> None:
    desk = Desk(10)
    desk.fetch()
    desk.acknowledge("0-4=1")
    assert desk.partition.locks.deadline == 30_000
    desk.acknowledge("5-9=1")
    assert desk.partition.locks.deadline is None


# -- loading


def test_kip_932_holes_between_stored_batches_are_delivered_for_the_first_time() -> None:
    stored = (StateBatch(2, 3, 2, 1), StateBatch(7, 8, 2, 1), StateBatch(10, 10, 0, 1))
    desk = Desk(5, 5, 5, stored=stored)
    assert [desk.fetch(records=3) for _ in range(3)] == ["0-1x1 4x1", "5-6x1 9x1", "10x2 11-14x1"]


def test_kip_932_the_start_offset_does_not_pass_the_first_hole() -> None:
    desk = Desk(10, stored=(StateBatch(0, 1, 2, 1), StateBatch(4, 5, 2, 1)))
    assert (desk.partition.start, desk.partition.complete_count) == (2, 2)
    assert desk.fetch(records=1) == "2-3x1"
    desk.acknowledge("2-3=1")
    assert (desk.partition.start, desk.partition.next_fetch_offset) == (4, 6)
    assert desk.fetch() == "6-9x1"
    desk.acknowledge("6-9=1")
    assert (desk.partition.start, desk.partition.in_flight) == (10, 0)


def test_kip_932_stored_batches_are_loaded_with_their_counts() -> None:
    stored = (StateBatch(0, 1, 0, 1), StateBatch(2, 3, 2, 1), StateBatch(4, 6, 0, 1), StateBatch(9, 14, 0, 1))
    desk = Desk(15, stored=stored)
    assert desk.fetch() == "0-1x2 4-6x2 7-8x1 9-14x2"


@pytest.mark.parametrize(
    "stored",
    [
        [StateBatch(4, 5, 0, 1)],
        [StateBatch(7, 6, 0, 1)],
        [StateBatch(5, 6, 9, 1)],
        [StateBatch(5, 2**60, 0, 1)],
        [StateBatch(5, 9, 0, 1), StateBatch(8, 9, 0, 1)],
    ],
)
def test_stored_batches_that_contradict_the_start_offset_are_refused(stored: list[StateBatch]) -> None:
    with pytest.raises(InvalidStateError):
        SharePartition(5, 0, stored)


def test_everything_finished_leaves_nothing_in_flight() -> None:
    partition = SharePartition(0, 3, [StateBatch(0, 4, 2, 1), StateBatch(5, 9, 4, 5)])
    assert (partition.start, partition.end, partition.in_flight, partition.state_epoch) == (10, 10, 0, 3)
