"""Share partitions under random members: no record has two holders, none is lost, and no delivery is one too many."""

from __future__ import annotations

import time
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.core.data.share.acquisition import Limits, Read
from koordinator.emulator.core.data.share.batches import Acquired, RecordState, StateBatch
from koordinator.emulator.core.data.share.partition import Acknowledgement, DeadRecords, SharePartition, StateWrite
from koordinator.emulator.core.refusal import RefusedError

MEMBERS = ("A", "B", "C")

WRITING = ("", 2**63)
"""The holder of a record whose change is being written."""


class World:
    """A log, a share partition, a share coordinator that may fail, and a model: the holder of each record."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.limits = Limits(
            self.random.choice((2, 3, 5, 10)),
            self.random.choice((100, 20, 8)),
            100,
            has_dead_letters=self.random.random() < 0.5,
        )
        self.partition = SharePartition(0)
        self.log: list[tuple[int, int]] = []
        self.now = 0
        self.start = 0
        self.holders: dict[int, tuple[str, int]] = {}
        self.counts: dict[int, int] = {}
        self.finished: set[int] = set()
        self.writes: list[StateWrite] = []
        self.stored: dict[int, StateBatch] = {}
        self.stored_start = 0
        self.dead: list[DeadRecords] = []

    @property
    def end(self) -> int:
        return self.log[-1][1] + 1 if self.log else 0

    def step(self) -> None:
        act = self.random.choice(
            (
                *(self.produce, self.fetch, self.fetch, self.acknowledge, self.acknowledge, self.finish_write),
                *(self.wait, self.release, self.reload, self.bury),
            )
        )
        act()
        self.check()

    def produce(self) -> None:
        self.log.append((self.end, self.end + self.random.randint(0, 7)))

    def fetch(self, records: int | None = None) -> list[Acquired]:
        if not self.partition.can_acquire(self.limits):
            return []
        member, offset = self.random.choice(MEMBERS), self.partition.next_fetch_offset
        batches = [each for each in self.log if each[1] >= offset][: self.random.randint(1, 4)]
        records = self.random.choice((1, 3, 500)) if records is None else records
        read = Read(offset, batches, records, self.random.choice((1, 5, 500)), self.random.random() < 0.4)
        rows = self.partition.acquire(self.now, member, read, self.limits)
        if read.is_exact:
            assert sum(row.size for row in rows) <= records
        for row in rows:
            for at in range(row.first, row.last + 1):
                assert at not in self.holders, f"{at} has two holders"
                assert at not in self.finished
                assert row.count == self.counts.get(at, 0) + 1 <= self.limits.deliveries
                self.holders[at] = (member, self.now + self.limits.lock_ms)
                self.counts[at] = row.count
        return rows

    def acknowledge(self) -> None:
        held = sorted(at for at, (member, _) in self.holders.items() if member)
        if not held:
            return
        first = self.random.choice(held)
        member = self.holders[first][0]
        last = first
        while self.holders.get(last + 1, ("",))[0] == member and self.random.random() < 0.8:
            last += 1
        one = self.random.random() < 0.5
        types = tuple(self.random.choice((0, 1, 2, 3, 4)) for _ in range(1 if one else last - first + 1))
        each = Acknowledgement(first, last, types)
        try:
            write = self.partition.acknowledge(self.now, member, [each], self.limits)
        except RefusedError as refused:
            raise AssertionError(f"{refused} for {each}") from refused
        for at in range(first, last + 1):
            if each.type_of(at) == 4:
                self.holders[at] = (member, self.now + self.limits.lock_ms)
        self.sent(write)

    def release(self) -> None:
        self.sent(self.partition.release(self.random.choice(MEMBERS), self.limits))

    def wait(self) -> None:
        self.now += self.random.choice((1, 50, 200))
        write = self.partition.expire(self.now, self.limits)
        for at, (_, until) in list(self.holders.items()):
            if until <= self.now:
                del self.holders[at]
        self.sent(write)

    def sent(self, write: StateWrite | None) -> None:
        if write is not None:
            for each in write.changes:
                for at in range(each.first, each.last + 1):
                    self.holders[at] = WRITING
            self.writes.append(write)

    def finish_write(self) -> None:
        if self.writes:
            write = self.writes.pop(self.random.randrange(len(self.writes)))
            is_written = self.random.random() < 0.8
            self.partition.complete(write, is_written=is_written)
            if is_written or not write.changes:
                self.dead += write.dead
            if is_written:
                self.stored_start = max(self.stored_start, write.start)
                for batch in write.batches:
                    for at in range(batch.first, batch.last + 1):
                        self.stored[at] = batch
            for each in write.changes:
                for at in range(each.first, each.last + 1):
                    if each.state is RecordState.ACQUIRED:
                        lock = each.lock
                        assert lock is not None
                        self.holders[at] = (each.member_id, lock.deadline)
                    else:
                        self.holders.pop(at, None)

    def bury(self) -> None:
        """Write a dead letter."""
        if self.dead:
            self.sent(self.partition.bury(self.dead.pop(self.random.randrange(len(self.dead)))))

    def reload(self) -> None:
        """Load the state again; what was not stored is delivered again, with the stored count."""
        if self.random.random() < 0.9 or self.writes:
            return
        stored = [
            StateBatch(at, at, batch.state, batch.count)
            for at, batch in sorted(self.stored.items())
            if at >= self.stored_start
        ]
        self.partition = SharePartition(self.stored_start, 0, stored)
        self.dead = self.partition.loaded_dead(self.limits)
        self.holders.clear()
        self.start = 0
        self.finished.clear()
        self.counts = {each.first: each.count for each in stored}

    def check(self) -> None:
        batches = self.partition.batches
        assert all(a.last < b.first for a, b in pairwise(batches))
        assert self.partition.start >= self.start, "the start offset went back"
        self.start = self.partition.start
        complete = 0
        for batch in batches:
            offsets = [at for each in batch.deliveries for at in range(each.first, each.last + 1)]
            assert offsets == list(range(batch.first, batch.last + 1))
            for each in batch.deliveries:
                assert each.count <= max(self.limits.deliveries, batch.most)
                if each.state is RecordState.ACQUIRED:
                    assert all(self.holders[at][0] == each.member_id for at in range(each.first, each.last + 1))
                if each.is_available:
                    assert each.count < self.limits.deliveries
                if each.state.is_final:
                    complete += max(0, each.last - max(each.first, self.start) + 1)
                if each.is_done:
                    self.finished.update(range(each.first, each.last + 1))
        self.finished.update(range(self.start))
        assert self.partition.complete_count == complete
        held = [each.lock for batch in batches for each in batch.deliveries if each.state is RecordState.ACQUIRED]
        deadlines = [lock.deadline for lock in held if lock is not None]
        if deadlines:
            assert self.partition.locks.deadline is not None
            assert self.partition.locks.deadline <= min(deadlines)

    def drain(self) -> None:
        """Finish all writes, let all locks expire, and consume everything that is left."""
        while self.writes:
            self.finish_write()
        self.now += 1000
        self.sent(self.partition.expire(self.now, self.limits))
        self.holders.clear()
        while self.writes or self.dead:
            self.finish_write()
            self.bury()
        for _ in range(100 * (self.end + 1)):
            rows = self.fetch()
            if not rows and self.partition.next_fetch_offset >= self.end:
                break
            for row in rows:
                member = self.holders[row.first][0]
                write = self.partition.acknowledge(
                    self.now, member, [Acknowledgement(row.first, row.last, (1,))], self.limits
                )
                assert write is not None
                self.partition.complete(write, is_written=True)
                for at in range(row.first, row.last + 1):
                    del self.holders[at]
            self.check()
        assert self.partition.next_fetch_offset >= self.end, "records were lost"
        assert all(each.is_done for batch in self.partition.batches for each in batch.deliveries)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_kip_932_no_record_has_two_holders_and_none_is_lost(seed: int) -> None:
    world = World(seed)
    for _ in range(80):
        world.step()
    world.drain()


@pytest.mark.slow
@pytest.mark.parametrize("is_exact", [False, True])
def test_ten_thousand_records_in_flight_cost_no_more_than_their_number(*, is_exact: bool) -> None:
    limits, n = Limits(5, 10_000, 30_000), 10_000
    partition = SharePartition(0)
    log = [(0, n - 1)] if is_exact else [(at, at) for at in range(n)]
    before = time.process_time()
    for _ in range(n):
        offset = partition.next_fetch_offset
        batches = log if is_exact else log[offset : offset + 1]
        assert partition.acquire(0, "A", Read(offset, batches, 1, 1, is_exact), limits)[0].first == offset
    for at in reversed(range(n)):
        write = partition.acknowledge(0, "A", [Acknowledgement(at, at, (1,))], limits)
        assert write is not None
        partition.complete(write, is_written=True)
    assert (partition.start, partition.in_flight) == (n, 0)
    assert time.process_time() - before < 5
