"""One partition's log: record batches, kept as they came.

Only the base offset and the leader epoch of a batch are written anew, and both lie outside its checksum
(`DefaultRecordBatch`). Everything is found by bisection; only a look-up by time opens a batch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.primitives import Malformed
from koordinator.wire.records import LIMIT, read_header, read_records, rebase, write_batch

from .producers import Producers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.records import BatchHeader, Record


LOOKED_INTO_BYTES_MAX = 16 * 1024 * 1024
LOOKED_INTO_RECORDS_MAX = 100_000
"""A batch that stands for more than this is not opened for a look-up by time: a few bytes can stand for millions."""


COMPACTED_BYTES_MIN = 16 * 1024
"""A compacted log of so many bytes is left alone; a longer one is compacted each time it has doubled."""

UNCOMPACTED_BYTES = 4 * 1024
"""The end of a compacted log, which stays as it was written: who follows it sees everything, tombstones too."""


@dataclass(frozen=True, slots=True)
class _Batch:
    data: bytes
    last_offset: int
    max_timestamp: int


class PartitionLog:
    """Batches with ascending offsets. Without replication the high watermark is the end of the log."""

    tells_of_growth = True
    """Whether somebody says so when it has grown; who waits for another one has to look again from time to time."""

    def __init__(self) -> None:
        self.start = 0
        """The first offset that can be read."""
        self.end = 0
        """The offset the next record gets; the high watermark and the last stable offset as well."""
        self.producers = Producers()
        # the epochs of leaders, and the first offset of each (Kafka's `LeaderEpochFileCache`)
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []
        self._batches: list[_Batch] = []
        # of each batch: its first offset, and how many bytes were ever written before it
        self._offsets: list[int] = []
        self._positions: list[int] = []
        self._written = 0
        # the greatest timestamp up to and including each batch: ascending, hence bisected. Batches that
        # DeleteRecords
        # took may have been the greatest, so it is thrown away then and made again when needed
        self._greatest: list[int] | None = []
        self._compact_at = COMPACTED_BYTES_MIN

    def begin_epoch(self, leader_epoch: int) -> None:
        """A new leader: what is appended from now on is of its epoch. One that has written nothing is forgotten."""
        if self._epoch_starts and self._epoch_starts[-1] == self.end:
            self._epochs.pop()
            self._epoch_starts.pop()
        self._epochs.append(leader_epoch)
        self._epoch_starts.append(self.end)

    def epoch_at(self, offset: int) -> int:
        """The epoch of the leader that wrote there, or at the end will write."""
        return self._epochs[max(0, bisect_right(self._epoch_starts, offset) - 1)]

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """Of the last leader up to this epoch: its epoch, and the offset where it ended; -1 and -1 for one to come.

        An epoch from before the first one known ended where that began (`LeaderEpochFileCache.endOffsetFor`).
        """
        if leader_epoch < 0 or leader_epoch > self._epochs[-1]:
            return -1, -1
        beyond = bisect_right(self._epochs, leader_epoch)
        if beyond == len(self._epochs):
            return leader_epoch, self.end
        epoch = self._epochs[beyond - 1] if beyond else leader_epoch
        return epoch, self._epoch_starts[beyond]

    def append(self, header: BatchHeader, batch: bytes, leader_epoch: int) -> int:
        """Write a batch of magic 2 at the end; returns the offset of its first record."""
        base_offset = self.end
        last_offset = base_offset + header.last_offset_delta
        self._batches.append(_Batch(rebase(batch, base_offset, leader_epoch), last_offset, header.max_timestamp))
        self._offsets.append(base_offset)
        self._positions.append(self._written)
        self._written += len(batch)
        if self._greatest is not None:
            before = self._greatest[-1] if self._greatest else -1
            self._greatest.append(max(before, header.max_timestamp))
        self.end = last_offset + 1
        return base_offset

    def restore(self, header: BatchHeader, batch: bytes) -> None:
        """Take back a batch that was kept, in its place. Gaps between batches are those of compaction."""
        self.end = header.base_offset
        if not self._epochs or header.partition_leader_epoch > self._epochs[-1]:
            self.begin_epoch(header.partition_leader_epoch)
        PartitionLog.append(self, header, batch, header.partition_leader_epoch)
        if header.producer_id >= 0:
            self.producers.appended(header, header.base_offset)

    def readable_bytes(self, offset: int, bytes_max: int) -> int:
        """How many bytes a read from `offset` (`start` to `end`) would bring: at least a batch, if there is one.

        As in Kafka a batch that `bytes_max` cuts counts with what is on this side of the cut.
        """
        if offset >= self.end:
            return 0
        first = self._index(offset)
        return max(len(self._batches[first].data), min(self._written - self._positions[first], bytes_max))

    def read(self, offset: int, bytes_max: int, *, first_whole: bool) -> bytes:
        """Whole batches from the one that holds `offset`, as many as fit in `bytes_max`.

        With `first_whole` the first is read however large it is (KIP-74), so that a consumer always gets
        ahead.
        """
        if offset >= self.end:
            return b""
        first = self._index(offset)
        limit = self._positions[first] + bytes_max
        # the batches before `beyond` begin within the limit; if the log goes on, the last of them ends outside
        beyond = bisect_right(self._positions, limit, lo=first)
        if self._written > limit:
            beyond -= 1
        if beyond <= first:
            return self._batches[first].data if first_whole else b""
        if beyond == first + 1:
            return self._batches[first].data
        return b"".join(batch.data for batch in self._batches[first:beyond])

    def end_of(self, base_offset: int, size: int) -> int:
        """The offset after the batches of a read of `size` bytes whose first batch begins at `base_offset`."""
        first = bisect_left(self._offsets, base_offset)
        if first == len(self._offsets):
            # they have been deleted since
            return base_offset
        last = bisect_left(self._positions, self._positions[first] + size, lo=first) - 1
        return self._batches[max(first, last)].last_offset + 1

    def records(self) -> Iterator[Record]:
        """Every record that can be read, in order. Raises what `wire.records.read_records` raises."""
        return self._records_from(0)

    def truncate_front(self, offset: int) -> None:
        """Delete what is before `offset` (KIP-107). Batches that lie before it wholly go; producers stay known."""
        assert offset <= self.end, f"{offset} is beyond the end, {self.end}"
        if offset <= self.start:
            return
        self.start = offset
        gone = bisect_left(self._batches, offset, key=_last_offset)
        del self._batches[:gone], self._offsets[:gone], self._positions[:gone]
        self._greatest = None

    def compact(self) -> bool:
        """If it has grown enough: of each key keep only the last record, and no tombstones (cleanup.policy=compact).

        Offsets stay, with gaps between them; the newest batches are not touched. For batches of this broker's own:
        their records are read. Returns whether it has.
        """
        if self._written < self._compact_at:
            return False
        newest = {record.key: record.offset for record in self.records()}
        clean = bisect_left(self._positions, self._written - UNCOMPACTED_BYTES)
        before, after = self._batches[:clean], self._batches[clean:]
        kept: list[_Batch] = []
        for batch in before:
            epoch = read_header(batch.data).partition_leader_epoch
            for record in read_records(batch.data):
                if record.value is not None and newest[record.key] == record.offset:
                    alone = write_batch([record], base_offset=record.offset, partition_leader_epoch=epoch)
                    kept.append(_Batch(alone, record.offset, record.timestamp))
        offsets = [batch.last_offset for batch in kept] + self._offsets[clean:]
        self._batches, self._offsets, self._positions, self._written = kept + after, offsets, [], 0
        for batch in self._batches:
            self._positions.append(self._written)
            self._written += len(batch.data)
        self._greatest = None
        self._compact_at = max(COMPACTED_BYTES_MIN, 2 * self._written)
        return True

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """The offset and timestamp of the first record not older than `timestamp`; None if there is none.

        Where a batch cannot be opened (its codec's library is not installed, it is too large, or it is broken
        inside) its first offset and greatest timestamp stand for it.
        """
        greatest = self._timestamps()
        for index in range(bisect_left(greatest, timestamp), len(self._batches)):
            if self._batches[index].max_timestamp < timestamp:
                continue
            try:
                found = next((r for r in self._look_into(index) if r.timestamp >= timestamp), None)
            except (Malformed, ImportError):
                return max(self.start, self._offsets[index]), self._batches[index].max_timestamp
            if found is not None:
                return found.offset, found.timestamp
            if self._offsets[index] >= self.start:
                # the whole batch is there, and its header says otherwise: that is broken, too
                return self._offsets[index], self._batches[index].max_timestamp
        return None

    def with_greatest_timestamp(self) -> tuple[int, int] | None:
        """The offset and timestamp of the first record that has the greatest timestamp (KIP-734)."""
        greatest = self._timestamps()
        return self.first_at_or_after(greatest[-1]) if greatest else None

    def _timestamps(self) -> list[int]:
        if self._greatest is None:
            self._greatest = []
            for index, batch in enumerate(self._batches):
                timestamp = batch.max_timestamp
                if self._offsets[index] < self.start:
                    timestamp = self._left_in_first_batch()
                self._greatest.append(max(timestamp, self._greatest[-1]) if self._greatest else timestamp)
        return self._greatest

    def _left_in_first_batch(self) -> int:
        try:
            return max((record.timestamp for record in self._look_into(0)), default=-1)
        except (Malformed, ImportError):
            return self._batches[0].max_timestamp

    def _records_from(self, index: int) -> Iterator[Record]:
        for at in range(index, len(self._batches)):
            yield from self._records_in(at)

    def _records_in(self, index: int, bytes_max: int = LIMIT) -> Iterator[Record]:
        records = read_records(self._batches[index].data, bytes_max)
        return (record for record in records if record.offset >= self.start)

    def _look_into(self, index: int) -> Iterator[Record]:
        batch = self._batches[index]
        if batch.last_offset - self._offsets[index] >= LOOKED_INTO_RECORDS_MAX:
            raise Malformed("too many records to look through")
        return self._records_in(index, LOOKED_INTO_BYTES_MAX)

    def _index(self, offset: int) -> int:
        """The batch that holds the offset, or the next one if none does."""
        index = bisect_right(self._offsets, offset) - 1
        # below zero where the log begins with a gap
        return index if index >= 0 and self._batches[index].last_offset >= offset else index + 1


def _last_offset(batch: _Batch) -> int:
    return batch.last_offset
