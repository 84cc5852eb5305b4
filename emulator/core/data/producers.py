"""A partition's producers: the sequence of their batches, and their open transactions (KIP-98).

The rules are those of Kafka's `ProducerStateManager`, `ProducerAppendInfo` and `VerificationStateEntry`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.control_records import read_marker
from koordinator.wire.errors import Error
from koordinator.wire.values import mutable, value

from ..refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.control_records import Marker
    from koordinator.wire.records import BatchHeader

SEQUENCE_MAX = 2**31 - 1
"""The largest sequence number; the next one is 0."""

NONE = -1
"""The sequence, timestamp, coordinator epoch and offset of a producer that has none."""

_BATCHES_REMEMBERED = 5  # the number of batches an idempotent producer may have in flight


@value
class WrittenBatch:
    """A batch in the log: its first and last sequence number, its base offset, and its timestamp."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@value
class EndedTransaction:
    """A transaction with its marker: the offsets of its first record and of the marker."""

    producer_id: int
    first_offset: int
    marker_offset: int
    is_aborted: bool


@mutable
class Producer:
    """A producer of this partition; `open_since` is the first offset of its open transaction."""

    id: int
    epoch: int
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=_BATCHES_REMEMBERED))
    last_timestamp: int = NONE
    coordinator_epoch: int = NONE
    open_since: int = NONE

    @property
    def last_sequence(self) -> int:
        """The last sequence number, or NONE."""
        return self.batches[-1].last_sequence if self.batches else NONE


@mutable
class _Verification:
    """A transactional producer that has asked to start a transaction here, with the lowest sequence it has sent."""

    epoch: int
    lowest_sequence: int
    starts_at_0: bool


class Producers:
    """The producers of a partition, by id."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        self._verifications: dict[int, _Verification] = {}
        self._ended: list[EndedTransaction] = []
        # first offsets of open transactions by producer id, in ascending order
        self._open: dict[int, int] = {}

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._producers.values())

    def has_open(self, producer_id: int, epoch: int | None) -> bool:
        """Return whether this producer has an open transaction here, with this epoch unless that is None."""
        producer = self._producers.get(producer_id)
        return producer is not None and producer.open_since != NONE and epoch in {None, producer.epoch}

    def is_fenced(self, producer_id: int, epoch: int) -> bool:
        """Return whether the epoch is earlier than the producer's latest here."""
        producer = self._producers.get(producer_id)
        return producer is not None and epoch < producer.epoch

    def expire(self, before_ms: int) -> None:
        """Forget the producers without an open transaction whose last batch is not later than `before_ms` (KIP-854)."""
        self._producers = {
            producer.id: producer
            for producer in self
            if producer.open_since != NONE or producer.last_timestamp > before_ms
        }

    def first_unstable(self, end: int) -> int:
        """Return the last stable offset of a log whose high watermark is `end`.

        A transaction whose marker is not below `end` still counts as open.
        """
        first = next(iter(self._open.values()), end)
        for each in reversed(self._ended):
            if each.marker_offset < end:
                break
            first = min(first, each.first_offset)
        return min(first, end)

    def aborted(self, offset: int, before: int) -> list[EndedTransaction]:
        """Return the aborted transactions in a read from `offset` to `before`, in the order of their markers."""
        first = bisect_left(self._ended, offset, key=lambda each: each.marker_offset)
        return [each for each in self._ended[first:] if each.is_aborted and each.first_offset < before]

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Return whether the transaction that wrote an offset was aborted."""
        return any(
            each.is_aborted and each.producer_id == producer_id and each.first_offset <= offset < each.marker_offset
            for each in self._ended
        )

    def begin_verification(self, header: BatchHeader, *, starts_at_0: bool = False) -> None:
        """Remember the lowest sequence with which a producer asks to start a transaction here (KAFKA-14561).

        That of its highest epoch counts, even of one that the transaction coordinator refuses. The first request
        decides whether an unknown producer `starts_at_0` (transaction version 2).
        """
        known = self._verifications.get(header.producer_id)
        if known is None:
            known = _Verification(header.producer_epoch, header.base_sequence, starts_at_0)
            self._verifications[header.producer_id] = known
        elif header.producer_epoch > known.epoch:
            known.epoch, known.lowest_sequence = header.producer_epoch, header.base_sequence
        elif header.producer_epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, header.base_sequence)

    def keep_last_batches(self) -> None:
        """Forget all but the last batch of each producer; a snapshot has no others (`ProducerStateEntry`)."""
        for producer in self:
            while len(producer.batches) > 1:
                producer.batches.popleft()

    def forget_verifications(self) -> None:
        """Forget the sequences of unconfirmed producers: they are in the memory of the leader that was asked."""
        self._verifications.clear()

    def duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        """Return the stored batch that this one repeats, if it is among the producer's last five."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, _last_sequence(header))
        return next(
            (written for written in producer.batches if (written.first_sequence, written.last_sequence) == sequences),
            None,
        )

    def refuse(self, header: BatchHeader, *, starts_at_0: bool = False) -> Refusal | None:
        """Return why this batch is not the next, or None.

        * 47: an older epoch.
        * 45: a gap, an old duplicate, or a first batch after one that was refused.
        * 48: a batch outside the producer's open transaction.

        An unknown producer may start with any sequence number, because its earlier batches may have been deleted; not
        so if it `starts_at_0` (transaction version 2).
        """
        producer = self._producers.get(header.producer_id)
        epoch, sequence = header.producer_epoch, header.base_sequence
        if producer is not None and epoch < producer.epoch:
            return Refusal(
                Error.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} is {epoch}, smaller than the last seen epoch {producer.epoch}",
            )
        expected = self._expected(producer, header, starts_at_0=starts_at_0)
        if expected not in {None, sequence}:
            return Refusal(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}, epoch {epoch}: "
                f"{sequence} (incoming seq. number), {expected} (expected seq. number)",
            )
        if producer is not None and producer.open_since != NONE and not header.is_transactional:
            return Refusal(
                Error.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id}, epoch {epoch}",
            )
        return None

    def _expected(self, producer: Producer | None, header: BatchHeader, *, starts_at_0: bool) -> int | None:
        """Return the sequence number that comes next; None if any may."""
        verification = self._verifications.get(header.producer_id)
        if verification is not None and header.base_sequence > verification.lowest_sequence:
            return verification.lowest_sequence
        if producer is None:
            return 0 if (starts_at_0 if verification is None else verification.starts_at_0) else None
        if header.producer_epoch > producer.epoch or not producer.batches:
            return 0
        return 0 if producer.last_sequence == SEQUENCE_MAX else producer.last_sequence + 1

    def appended(self, header: BatchHeader, base_offset: int, batch: bytes = b"") -> None:
        """Record a batch that was written; of a marker the bytes are needed."""
        if header.is_control:
            return self.ended(header, base_offset, read_marker(batch))
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            open_since, coordinator_epoch = (
                (producer.open_since, producer.coordinator_epoch) if producer else (NONE, NONE)
            )
            producer = Producer(
                header.producer_id,
                header.producer_epoch,
                coordinator_epoch=coordinator_epoch,
                open_since=open_since,
            )
            self._producers[header.producer_id] = producer
        written = WrittenBatch(header.base_sequence, _last_sequence(header), base_offset, header.max_timestamp)
        producer.batches.append(written)
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional:
            self._verifications.pop(header.producer_id, None)
            if producer.open_since == NONE:
                producer.open_since = self._open[producer.id] = base_offset
        return None

    def refuse_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, *, strict: bool) -> Error:
        """Return why a marker cannot be written, or NONE.

        47 for an older epoch; with `strict` (transaction version 2) also for the producer's own while its transaction
        is open. 52 for a coordinator that has been replaced.
        """
        producer = self._producers.get(producer_id) or Producer(producer_id, NONE)
        is_stale = epoch == producer.epoch and strict and producer.open_since != NONE
        if epoch < producer.epoch or is_stale:
            return Error.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < producer.coordinator_epoch:
            return Error.TRANSACTION_COORDINATOR_FENCED
        return Error.NONE

    def ended(self, header: BatchHeader, offset: int, marker: Marker) -> None:
        """Record a marker: it ends the producer's transaction here, if there is one."""
        producer = self._producers.get(header.producer_id)
        if producer is None or header.producer_epoch > producer.epoch:
            # the batches of the earlier epoch are forgotten
            open_since = producer.open_since if producer else NONE
            producer = Producer(header.producer_id, header.producer_epoch, open_since=open_since)
            self._producers[header.producer_id] = producer
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        verification = self._verifications.get(header.producer_id)
        # the next transaction of version 2, which has a new epoch, may have asked already
        if verification and not (verification.starts_at_0 and verification.epoch == header.producer_epoch):
            del self._verifications[header.producer_id]
        if producer.open_since != NONE:
            self._ended.append(EndedTransaction(producer.id, producer.open_since, offset, not marker.is_commit))
            producer.open_since = NONE
            del self._open[producer.id]


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % (SEQUENCE_MAX + 1)
