"""The records that share fetches read from the logs, and acquire (`DelayedShareFetch`, `ShareFetchUtils`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import share_fetch as fetching

from .acquisition import Read
from .exchanges import empty_row
from .settings import ShareSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...cluster import ClusterState
    from ..log import LogSlice, PartitionLog
    from .exchanges import WaitingFetch
    from .partition import SharePartition
    from .sessions import PartitionKey

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
"""The values of share_acquire_mode: whole batches, or at most max_records (KIP-1206)."""

Acquirable = dict["PartitionKey", "SharePartition"]
"""The share partitions of a fetch from which records can be acquired."""


class RecordReader:
    """Reads and acquires records for share fetches."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def find(self, waiting: WaitingFetch, acquirable: Acquirable) -> Acquirable:
        """Find the next offset of share partitions in the log, and return those where it was not known before.

        Kafka: `maybeReadFromLog`, `maybeUpdateFetchOffsetMetadata`.
        """
        found = {key: state for key, state in acquirable.items() if state.found_offset != state.next_fetch_offset}
        for key, state in found.items():
            log, offset = self.log(key), state.next_fetch_offset
            if log is not None and log.start <= offset <= self._limit(waiting, log):
                state.found_offset = offset
        return found

    def is_satisfied(self, waiting: WaitingFetch, acquirable: Acquirable) -> bool:
        """Return whether a read fails, or there are enough bytes: those of the log, acquirable or not."""
        total = 0
        for key, (state, share) in _shared(waiting, acquirable).items():
            log, offset = self.log(key), state.next_fetch_offset
            if log is not None:
                limit = self._limit(waiting, log)
                if share < 0 or not log.start <= offset <= limit:
                    return True
                total += min(share, log.readable_bytes(offset, share, limit))
        return total >= min(waiting.request.min_bytes, waiting.bytes_max)

    def acquire(
        self, now: int, waiting: WaitingFetch, acquirable: Acquirable
    ) -> dict[PartitionKey, fetching.PartitionData]:
        """Acquire records in the order of the partitions, and return the rows.

        A negative limit of bytes fails with UNKNOWN_SERVER_ERROR.
        """
        rows: dict[PartitionKey, fetching.PartitionData] = {}
        wanted = waiting.request.max_records
        for key, (state, share) in _shared(waiting, acquirable).items():
            if share < 0:
                rows[key] = empty_row(key[1], Error.UNKNOWN_SERVER_ERROR)
            elif self.log(key) is not None:
                rows[key] = row = self._row(now, waiting, key, state, share, wanted)
                wanted -= sum(each.last_offset - each.first_offset + 1 for each in row.acquired_records)
        return rows

    def log(self, key: PartitionKey) -> PartitionLog | None:
        """Return the log of a partition, or None if it does not exist."""
        topic = self._cluster.topics.find_id(key[0])
        return None if topic is None else topic.log(key[1])

    def _row(
        self,
        now: int,
        waiting: WaitingFetch,
        key: PartitionKey,
        state: SharePartition,
        bytes_max: int,
        records_max: int,
    ) -> fetching.PartitionData:
        """Acquire records of a partition; an offset outside the log moves to its start, and the row is empty."""
        log, request, (group_id, member_id) = self.log(key), waiting.request, waiting.exchange.key
        assert log is not None, f"{key} has no log"
        offset = state.next_fetch_offset
        if not log.start <= offset <= log.end:
            state.truncate(log.start)
            return empty_row(key[1])
        limit = self._limit(waiting, log)
        batches = log.slice(offset, bytes_max, limit)
        is_exact = request.share_acquire_mode == RECORD_LIMIT
        aborted = self._aborted(waiting, log, batches)
        read = Read(offset, batches, records_max, request.batch_size, is_exact, aborted)
        rows = state.acquire(now, member_id, read, ShareSettings(self._cluster, group_id).limits)
        if not rows:
            return empty_row(key[1])
        return fetching.PartitionData(
            partition_index=key[1],
            records=batches.overlapping(rows[0].first, rows[-1].last),
            acquired_records=tuple(
                fetching.AcquiredRecords(first_offset=each.first, last_offset=each.last, delivery_count=each.count)
                for each in rows
            ),
        )

    def _aborted(self, waiting: WaitingFetch, log: PartitionLog, batches: LogSlice) -> tuple[tuple[int, int], ...]:
        """Return the batches of aborted transactions, if the group reads committed records only."""
        is_committed = ShareSettings(self._cluster, waiting.exchange.group_id).reads_committed
        if not is_committed or not batches or not log.producers.aborted(batches[0][0], batches[-1][1] + 1):
            return ()
        return tuple(
            (header.base_offset, header.last_offset)
            for header in batches.headers()
            if header.is_transactional
            and not header.is_control
            and log.producers.is_aborted(header.producer_id, header.base_offset)
        )

    def _limit(self, waiting: WaitingFetch, log: PartitionLog) -> int:
        """Return the offset before which a group reads."""
        return (
            log.last_stable_offset
            if ShareSettings(self._cluster, waiting.exchange.group_id).reads_committed
            else log.end
        )


def _shared(waiting: WaitingFetch, acquirable: Acquirable) -> Mapping[PartitionKey, tuple[SharePartition, int]]:
    """Return the share partitions with the bytes that each may have; all are negative if the limit is.

    Kafka gives the remainder to a random one, here it is the first (`PartitionMaxBytesStrategy`).
    """
    count, bytes_max = max(1, len(acquirable)), waiting.bytes_max
    share, rest = divmod(bytes_max, count)
    sizes = [share + rest] + [share] * (count - 1)
    if bytes_max < 0:
        sizes = [-1] * count
    elif share == 0:
        sizes = [1] * rest + [0] * (count - rest)
    return {key: (state, size) for (key, state), size in zip(acquirable.items(), sizes, strict=False)}
