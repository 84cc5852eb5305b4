"""The log of a partition on disk: batches are readable only once they are flushed.

In Kafka's words: the high watermark follows the log end offset after the flush.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from koordinator.wire.records import read_header, rebase

from .log import PartitionLog
from .producers import Producers

if TYPE_CHECKING:
    from koordinator.wire.records import BatchHeader


class UnflushedLog(PartitionLog):
    """A log that holds appended batches until they are durable (`mark_flushed`) or lost (`discard`).

    A flush covers the batches that no earlier flush covers. Flushes end in the order of their starts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unflushed: list[tuple[BatchHeader, bytes, int]] = []
        self._unflushed_end = 0
        # the number of batches of each flush in flight
        self._flushing: deque[int] = deque()

    def append(self, header: BatchHeader, batch: bytes, leader_epoch: int) -> int:
        """Hold a batch of magic 2; return the offset that its first record will have."""
        base_offset = self.next_offset
        self._unflushed.append((header, rebase(batch, base_offset, leader_epoch), leader_epoch))
        self._unflushed_end = base_offset + header.last_offset_delta + 1
        return base_offset

    def begin_flush(self) -> bytes:
        """Begin to flush the batches that no flush in flight covers; return them as they are to be on disk."""
        covered = sum(self._flushing)
        self._flushing.append(len(self._unflushed) - covered)
        return b"".join(batch for _, batch, _ in self._unflushed[covered:])

    @property
    def is_flushing(self) -> bool:
        """Whether a flush is in flight."""
        return bool(self._flushing)

    @property
    def is_flushed(self) -> bool:
        """Whether all appended batches are durable, and so readable."""
        return not self._unflushed

    @property
    def next_offset(self) -> int:
        """The offset of the next appended record."""
        return self._unflushed_end if self._unflushed else self.end

    @property
    def flushed(self) -> bytes:
        """The durable batches."""
        return b"".join(batch.data for batch in self._batches)

    def mark_flushed(self) -> None:
        """Mark the batches of the oldest flush as durable."""
        count = self._flushing.popleft()
        durable, self._unflushed = self._unflushed[:count], self._unflushed[count:]
        for header, batch, leader_epoch in durable:
            super().append(header, batch, leader_epoch)

    def discard(self) -> None:
        """Discard the unflushed batches and rebuild producer state from the log."""
        if any(header.producer_id >= 0 for header, _, _ in self._unflushed):
            self.producers = Producers()
            for batch in self._batches:
                header = read_header(batch.data)
                if header.producer_id >= 0:
                    self.producers.appended(header, header.base_offset, batch.data)
        self._unflushed.clear()
        self._flushing.clear()
        self._epoch_starts = [min(start, self.end) for start in self._epoch_starts]
