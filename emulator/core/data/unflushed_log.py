"""The log of a partition on disk: batches are readable only once they are flushed.

In Kafka's words: the high watermark follows the log end offset after the flush.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.records import read_header, rebase

from .log import PartitionLog
from .producers import Producers

if TYPE_CHECKING:
    from koordinator.wire.records import BatchHeader


class UnflushedLog(PartitionLog):
    """A log that holds appended batches until they are durable (`mark_flushed`) or lost (`discard`).

    A flush covers the batches held at its start; later ones wait for the next flush.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unflushed: list[tuple[BatchHeader, bytes, int]] = []
        self._unflushed_end = 0
        self._in_flight = 0

    def append(self, header: BatchHeader, batch: bytes, leader_epoch: int) -> int:
        """Hold a batch of magic 2; return the offset that its first record will have."""
        base_offset = self._unflushed_end if self._unflushed else self.end
        self._unflushed.append((header, rebase(batch, base_offset, leader_epoch), leader_epoch))
        self._unflushed_end = base_offset + header.last_offset_delta + 1
        return base_offset

    def begin_flush(self) -> bytes:
        """Begin to flush the unflushed batches; return them as they are to be on disk."""
        self._in_flight = len(self._unflushed)
        return b"".join(batch for _, batch, _ in self._unflushed)

    @property
    def flushed(self) -> bytes:
        """The durable batches."""
        return b"".join(batch.data for batch in self._batches)

    def mark_flushed(self) -> None:
        """Mark the batches of the flush as durable."""
        durable, self._unflushed = self._unflushed[: self._in_flight], self._unflushed[self._in_flight :]
        self._in_flight = 0
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
        self._in_flight = 0
