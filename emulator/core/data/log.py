"""A partition's log: record batches as the producer sent them.

Only the base offset and the leader epoch of a batch are rewritten; the checksum covers neither (`DefaultRecordBatch`).
Lookups are by bisection; only a lookup by time opens a batch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from koordinator.wire.primitives import Malformed
from koordinator.wire.records import LIMIT, read_header, read_records, rebase, with_records
from koordinator.wire.values import value

from .producers import Producers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from koordinator.wire.records import BatchHeader, Record


LOOKUP_BYTES_MAX = 16 * 1024 * 1024
LOOKUP_RECORDS_MAX = 100_000
"""A lookup by time does not open batches beyond these limits: a few bytes can expand to millions of records."""


COMPACTED_BYTES_MIN = 16 * 1024
"""A compacted log below this size is left alone; a larger one is compacted whenever it has doubled."""

UNCOMPACTED_BYTES = 4 * 1024
"""The uncompacted tail of a compacted log: consumers that follow it see every record, tombstones included."""

INDEX_INTERVAL_BYTES = 4_096
"""The bytes between two entries of the offset index (`index.interval.bytes`)."""


@value
class _Batch:
    data: bytes
    last_offset: int
    max_timestamp: int


@value
class LogSegment:
    """A part of a log, from `start` to before `end`, with its bytes, first and greatest timestamp (-1 if empty)."""

    start: int
    end: int
    size: int
    first_timestamp: int
    max_timestamp: int


def _timestamp(batch: tuple[int, _Batch]) -> int:
    return batch[1].max_timestamp


def _with_records(batch: _Batch, records: list[Record]) -> _Batch:
    """Return a committed batch with only these of its records; unchanged if it has no others and no transaction."""
    header = read_header(batch.data)
    if len(records) == header.record_count and not header.is_transactional:
        return batch
    data = with_records(batch.data, records)
    return _Batch(data, batch.last_offset, read_header(data).max_timestamp)


class LogSlice:
    """Successive batches of a log, each as its first and last offset; valid until the log changes."""

    def __init__(self, offsets: Sequence[int], batches: Sequence[_Batch], first: int, beyond: int) -> None:
        self._offsets, self._batches = offsets, batches
        self._range = range(first, beyond)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, index: int) -> tuple[int, int]:
        at = self._range[index]
        return self._offsets[at], self._batches[at].last_offset

    def headers(self) -> Iterator[BatchHeader]:
        """Yield the headers of the batches."""
        return (read_header(self._batches[at].data) for at in self._range)

    def overlapping(self, first: int, last: int) -> bytes:
        """Return the bytes of the batches that contain offsets from `first` to `last`."""
        start = max(self._range.start, bisect_right(self._offsets, first) - 1)
        beyond = min(self._range.stop, bisect_right(self._offsets, last))
        return b"".join(batch.data for batch in self._batches[start:beyond])


class PartitionLog:
    """Batches with ascending offsets. Without replication the high watermark is the log end offset."""

    reports_appends = True
    """Whether the owner reports appends; fetches poll a log that does not."""

    def __init__(self) -> None:
        self.start = 0
        """The first readable offset."""
        self.end = 0
        """The offset of the next record, which is also the high watermark."""
        self.producers = Producers()
        # leader epochs and the first offset of each (Kafka's `LeaderEpochFileCache`)
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []
        self._batches: list[_Batch] = []
        # of each batch: its first offset, and the bytes written before it
        self._offsets: list[int] = []
        self._positions: list[int] = []
        self._written = 0
        # Kafka's sparse offset index: the positions of some batches, and their last offsets
        self._indexed: list[tuple[int, int]] = []
        self._unindexed_bytes = 0
        # running maximum of the batches' timestamps, for bisection; None after DeleteRecords, until it is needed
        self._running_max: list[int] | None = []
        # of the deleted batches whose segment is still there, the first with the greatest timestamp, and its offset
        self._latest_deleted: tuple[int, _Batch] | None = None
        self._compact_at = COMPACTED_BYTES_MIN
        # the first offsets of the segments, and the offset before which all batches have their segment
        self._segment_starts, self._divided = [0], 0
        self.cleaned = 0
        """The offset before which the log is compacted."""
        self.tombstones: dict[int, int] = {}
        """By offset, the times in ms at which tombstones that compaction has seen may go (KIP-534)."""

    def begin_epoch(self, leader_epoch: int) -> None:
        """Start a leader epoch at the end of the log; an epoch without records is dropped."""
        self.producers.forget_verifications()
        if self._epoch_starts and self._epoch_starts[-1] == self.end:
            self._epochs.pop()
            self._epoch_starts.pop()
        self._epochs.append(leader_epoch)
        self._epoch_starts.append(self.end)

    @property
    def content(self) -> bytes:
        """All batches."""
        return b"".join(batch.data for batch in self._batches)

    @property
    def size(self) -> int:
        """The bytes of the readable batches."""
        return self._written - self._positions[0] if self._positions else 0

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided."""
        return self.producers.first_unstable(self.end)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of an offset, or of the next record."""
        return self._epochs[max(0, bisect_right(self._epoch_starts, offset) - 1)]

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """Return the last epoch up to this one, and its end offset; -1 and -1 for -1 and for one that has not started.

        An epoch before the first known one ends where that one starts (`LeaderEpochFileCache.endOffsetFor`).
        """
        if leader_epoch == -1 or leader_epoch > self._epochs[-1]:
            return -1, -1
        beyond = bisect_right(self._epochs, leader_epoch)
        if beyond == len(self._epochs):
            return leader_epoch, self.end
        epoch = self._epochs[beyond - 1] if beyond else leader_epoch
        return epoch, self._epoch_starts[beyond]

    def append(self, header: BatchHeader, batch: bytes, leader_epoch: int) -> int:
        """Append a batch of magic 2; return the offset of its first record."""
        base_offset = self.end
        last_offset = base_offset + header.last_offset_delta
        self._batches.append(_Batch(rebase(batch, base_offset, leader_epoch), last_offset, header.max_timestamp))
        self._offsets.append(base_offset)
        self._positions.append(self._written)
        if self._unindexed_bytes > INDEX_INTERVAL_BYTES:
            self._indexed.append((self._written, last_offset))
            self._unindexed_bytes = 0
        self._unindexed_bytes += len(batch)
        self._written += len(batch)
        if self._running_max is not None:
            before = self._running_max[-1] if self._running_max else -1
            self._running_max.append(max(before, header.max_timestamp))
        self.end = last_offset + 1
        return base_offset

    def restore(self, header: BatchHeader, batch: bytes) -> None:
        """Restore a stored batch at its own offset. Gaps between batches come from compaction."""
        self.end = header.base_offset
        if not self._epochs or header.partition_leader_epoch > self._epochs[-1]:
            self.begin_epoch(header.partition_leader_epoch)
        self.append(header, batch, header.partition_leader_epoch)
        if header.producer_id >= 0:
            self.producers.appended(header, header.base_offset, batch)

    def readable_bytes(self, offset: int, bytes_max: int, before: int | None = None) -> int:
        """Return the bytes that a read from `offset` (`start` to `end`) returns: at least one batch, if there is any.

        As in Kafka a batch that `bytes_max` cuts counts with its part below the limit. Batches from offset `before` on
        do not count.
        """
        first = self._first_read(offset, before)
        if first is None:
            return 0
        return max(
            len(self._batches[first].data), min(self._written_before(before) - self._positions[first], bytes_max)
        )

    def read(self, offset: int, bytes_max: int, *, first_whole: bool, before: int | None = None) -> bytes:
        """Return `bytes_max` bytes from the batch that contains `offset` on, or all if there are fewer.

        The limit may cut the last batch (`LogSegment.read`), but not the first: with `first_whole` it is returned
        whatever its size (KIP-74), so that a consumer always makes progress, otherwise it is left out. Batches from
        offset `before` on are left out.
        """
        first = self._first_read(offset, before)
        if first is None:
            return b""
        data = self._batches[first].data
        size = min(bytes_max, self._written_before(before) - self._positions[first])
        if size < len(data):
            return data if first_whole else b""
        beyond = bisect_left(self._positions, self._positions[first] + size, lo=first)
        if beyond == first + 1:
            return data
        return b"".join(batch.data for batch in self._batches[first:beyond])[:size]

    def slice(self, offset: int, bytes_max: int, before: int) -> LogSlice:
        """Return the whole batches of such a read: with room for a byte at least one, if there is any."""
        first = self._first_read(offset, before)
        if first is None or bytes_max <= 0:
            return LogSlice((), (), 0, 0)
        end = self._positions[first] + min(bytes_max, self._written_before(before) - self._positions[first])
        beyond = bisect_right(self._positions, end, lo=first) - (end < self._written)
        return LogSlice(self._offsets, self._batches, first, max(beyond, first + 1))

    def beginning(self, offset: int, bytes_max: int, before: int) -> bytes:
        """Return the first bytes of the batch that contains `offset`, if it starts before offset `before`."""
        first = self._first_read(offset, before)
        return b"" if first is None else self._batches[first].data[:bytes_max]

    def _first_read(self, offset: int, before: int | None) -> int | None:
        """Return the index of the first batch that a read returns, or None without one."""
        limit = self.end if before is None else before
        if offset >= limit:
            return None
        first = self._index(offset)
        return first if first < len(self._offsets) and self._offsets[first] < limit else None

    def _written_before(self, offset: int | None) -> int:
        """Return the bytes of the batches that start before `offset`."""
        if offset is None or offset >= self.end:
            return self._written
        return self._position(bisect_left(self._offsets, offset))

    def _position(self, index: int) -> int:
        """Return the position of a batch in the log, or that after the last batch."""
        return self._positions[index] if index < len(self._positions) else self._written

    def end_of(self, base_offset: int, size: int) -> int:
        """Return the offset after the whole batches in a read of `size` bytes that starts at `base_offset`."""
        first = bisect_left(self._offsets, base_offset)
        if first == len(self._offsets):
            # deleted meanwhile
            return base_offset
        end = self._positions[first] + size
        last = bisect_right(self._positions, end, lo=first) - 1
        if end < self._written:
            last -= 1
        return self._batches[max(first, last)].last_offset + 1

    def upper_bound(self, offset: int, size: int) -> int:
        """Return an offset after a read of `size` bytes from `offset`, as exact as Kafka's index: often the end.

        Kafka: `OffsetIndex.fetchUpperBoundOffset`.
        """
        after = bisect_left(self._indexed, self._position(self._index(offset)) + size, key=lambda entry: entry[0])
        return self._indexed[after][1] if after < len(self._indexed) else self.end

    def batches(self) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """Return header and readable records of every batch that the log has now, whatever becomes of it meanwhile.

        The iterator raises the errors of `wire.records.read_records`.
        """
        start, stored = self.start, [batch.data for batch in self._batches]
        return (
            (read_header(data), [record for record in read_records(data, LIMIT) if record.offset >= start])
            for data in stored
        )

    def records(self) -> Iterator[Record]:
        """Return every readable record of clients that the log has now, in order, as `batches` does."""
        batches = self.batches()
        return (record for header, records in batches if not header.is_control for record in records)

    def truncate_front(self, offset: int) -> None:
        """Delete the records before `offset` (KIP-107). Whole batches before it are dropped; producer state stays."""
        assert offset <= self.end, f"{offset} is beyond the end, {self.end}"
        if offset <= self.start:
            return
        self.start = offset
        dropped = bisect_left(self._batches, offset, key=lambda batch: batch.last_offset)
        del self._segment_starts[: bisect_right(self._segment_starts, offset) - 1]
        deleted = ((at, batch) for at, batch in self._with_deleted(dropped) if at >= self._segment_starts[0])
        self._latest_deleted = max(deleted, key=_timestamp, default=None)
        del self._batches[:dropped], self._offsets[:dropped], self._positions[:dropped]
        self._running_max = None
        # the first epoch now starts here (`LeaderEpochFileCache.truncateFromStart`)
        ended = max(0, bisect_right(self._epoch_starts, offset) - 1)
        del self._epochs[:ended], self._epoch_starts[:ended]
        self._epoch_starts[:1] = [max(offset, each) for each in self._epoch_starts[:1]]

    def truncated(self, offset: int) -> PartitionLog:
        """Return this log without the batches that reach `offset`, as a replica has it that lacks them.

        Producers and epochs are those of the remaining batches (`UnifiedLog.truncateTo`).
        """
        kept = bisect_left(self._batches, offset, key=lambda batch: batch.last_offset)
        rest = PartitionLog()
        for batch in self._batches[:kept]:
            rest.restore(read_header(batch.data), batch.data)
        rest.end = self._offsets[kept] if kept < len(self._batches) else self.end
        rest.truncate_front(min(self.start, rest.end))
        rest._latest_deleted = self._latest_deleted
        first, *others = self._segment_starts
        rest._segment_starts = [first, *(each for each in others if each < rest.end)]
        rest._divided = min(self._divided, rest.end)
        rest.cleaned = min(self.cleaned, rest.end)
        rest.tombstones = {at: time for at, time in self.tombstones.items() if at < rest.end}
        return rest

    def _with_deleted(self, count: int) -> Iterator[tuple[int, _Batch]]:
        """Yield the first batches with their offsets, after the deleted one that has the greatest timestamp."""
        if self._latest_deleted is not None:
            yield self._latest_deleted
        yield from zip(self._offsets[:count], self._batches[:count], strict=True)

    def roll(self) -> None:
        """Close the active segment, so that it can be deleted."""
        if self._segment_starts[-1] < self.end:
            self._segment_starts.append(self.end)

    def segments(self, bytes_max: float, duration_ms: float) -> list[LogSegment]:
        """Return the segments, of which the last one is active; empty ones before it are left out.

        The batches appended since the last call are divided first: a batch begins a segment if the active one would
        exceed `bytes_max`, or if it is more than `duration_ms` newer than the first one (`LogSegment.shouldRoll`).
        """
        starts, offsets = self._segment_starts, self._offsets
        first = bisect_left(offsets, starts[-1])
        for index in range(bisect_left(offsets, self._divided), len(offsets)):
            batch, begun = self._batches[index], self._batches[first]
            size = self._positions[index] + len(batch.data) - self._positions[first]
            if index > first and (size > bytes_max or batch.max_timestamp - begun.max_timestamp > duration_ms):
                first = index
                starts.append(offsets[index])
        self._divided = self.end
        segments = [self._segment(start, end) for start, end in zip(starts, [*starts[1:], self.end], strict=True)]
        return [segment for segment in segments[:-1] if segment.size] + segments[-1:]

    def _segment(self, start: int, end: int) -> LogSegment:
        batches = self._batches[bisect_left(self._offsets, start) : bisect_left(self._offsets, end)]
        timestamps = [batch.max_timestamp for batch in batches] or [-1]
        return LogSegment(start, end, sum(len(batch.data) for batch in batches), timestamps[0], max(timestamps))

    def compact_if_grown(self) -> bool:
        """If the log has grown enough, compact all but its newest batches; tombstones go. Returns whether it did."""
        if self._written < self._compact_at:
            return False
        clean = bisect_left(self._positions, self._written - UNCOMPACTED_BYTES)
        self.compact(self._offsets[clean] if clean < len(self._offsets) else self.end)
        self._compact_at = max(COMPACTED_BYTES_MIN, 2 * self._written)
        return True

    def compact(self, end: int, keeps_tombstone: Callable[[int], bool] = lambda _: False) -> None:
        """In the batches before offset `end`, keep only the last record of each key.

        A tombstone stays if `keeps_tombstone` of its offset does so. Offsets stay, with gaps between them; the last
        batch stays, if need be without records. What follows an open transaction is not touched; of decided ones the
        committed records remain, in ordinary batches. Raises the errors of `wire.records.read_records`, and then
        changes nothing.
        """
        end = min(end, self.last_stable_offset)
        clean = bisect_left(self._offsets, end)
        newest = {record.key: record.offset for index in range(clean) for record in self._committed(index)}
        kept: dict[int, _Batch] = {}
        for index, (base_offset, batch) in enumerate(zip(self._offsets[:clean], self._batches[:clean], strict=True)):
            records = [
                record
                for record in self._committed(index)
                if record.key is not None
                and newest[record.key] == record.offset
                and (record.value is not None or keeps_tombstone(record.offset))
            ]
            # without its last batch a log would end earlier after a restart
            if records or batch is self._batches[-1]:
                kept[base_offset] = _with_records(batch, records)
        self._batches[:clean], self._offsets[:clean] = kept.values(), kept
        self._positions, self._written = [], 0
        self._indexed, self._unindexed_bytes = [], 0
        for batch in self._batches:
            self._positions.append(self._written)
            self._written += len(batch.data)
        self._running_max = self._latest_deleted = None
        self.cleaned = max(self.cleaned, end)

    def _committed(self, index: int) -> Iterator[Record]:
        """Return the readable records of a batch below the last stable offset; none of a marker or an aborted one."""
        return iter(()) if self._is_void(read_header(self._batches[index].data)) else self._records_in(index)

    def _is_void(self, header: BatchHeader) -> bool:
        """Return whether a batch is a marker, or one of an aborted transaction."""
        is_aborted = header.is_transactional and self.producers.is_aborted(header.producer_id, header.base_offset)
        return header.is_control or is_aborted

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record not older than `timestamp`, or None.

        For a batch that cannot be opened (missing codec, too large, corrupt) its first offset and greatest timestamp
        count.
        """
        timestamps = self._timestamps()
        for index in range(bisect_left(timestamps, timestamp), len(self._batches)):
            if self._batches[index].max_timestamp < timestamp:
                continue
            try:
                record = next((r for r in self._records_for_lookup(index) if r.timestamp >= timestamp), None)
            except (Malformed, ImportError):
                return max(self.start, self._offsets[index]), self._batches[index].max_timestamp
            if record is not None:
                return record.offset, record.timestamp
            if self._offsets[index] >= self.start:
                # no record of the whole batch has the timestamp of its header: it is corrupt
                return self._offsets[index], self._batches[index].max_timestamp
        return None

    def max_timestamp_record(self) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record with the greatest timestamp (KIP-734), or None.

        A deleted record counts as long as its segment is there (`UnifiedLog.fetchOffsetByTimestamp`).
        """
        latest = max(self._with_deleted(len(self._batches)), key=_timestamp, default=None)
        if latest is None:
            return None
        base_offset, batch = latest
        try:
            record = next((r for r in self._opened(base_offset, batch) if r.timestamp == batch.max_timestamp), None)
        except (Malformed, ImportError):
            record = None
        return base_offset if record is None else record.offset, batch.max_timestamp

    def _timestamps(self) -> list[int]:
        if self._running_max is None:
            self._running_max = []
            for index, batch in enumerate(self._batches):
                timestamp = batch.max_timestamp
                if self._offsets[index] < self.start:
                    timestamp = self._max_timestamp_of_first_batch()
                self._running_max.append(max(timestamp, self._running_max[-1]) if self._running_max else timestamp)
        return self._running_max

    def _max_timestamp_of_first_batch(self) -> int:
        try:
            return max((record.timestamp for record in self._records_for_lookup(0)), default=-1)
        except (Malformed, ImportError):
            return self._batches[0].max_timestamp

    def _records_in(self, index: int) -> Iterator[Record]:
        records = read_records(self._batches[index].data, LIMIT)
        return (record for record in records if record.offset >= self.start)

    def _records_for_lookup(self, index: int) -> Iterator[Record]:
        records = self._opened(self._offsets[index], self._batches[index])
        return (record for record in records if record.offset >= self.start)

    @staticmethod
    def _opened(base_offset: int, batch: _Batch) -> list[Record]:
        """Return the records of a batch, deleted ones included. Raises Malformed if it has too many for a lookup."""
        if batch.last_offset - base_offset >= LOOKUP_RECORDS_MAX:
            raise Malformed("too many records to look through")
        return read_records(batch.data, LOOKUP_BYTES_MAX)

    def _index(self, offset: int) -> int:
        """Return the index of the batch that contains the offset, or else of the next one."""
        index = bisect_right(self._offsets, offset) - 1
        # negative before a gap at the start of the log
        return index if index >= 0 and self._batches[index].last_offset >= offset else index + 1
