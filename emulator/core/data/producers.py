"""A partition's state of idempotent producers, so that a batch sent twice is written once (KIP-98).

The rules are those of Kafka's `ProducerStateManager` and `ProducerAppendInfo`, without transactions and without
`producer.id.expiration.ms`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.values import value

from ..refusal import Refusal

if TYPE_CHECKING:
    from koordinator.wire.records import BatchHeader

SEQUENCE_MAX = 2**31 - 1
"""The largest sequence number; the next one is 0."""

_BATCHES_REMEMBERED = 5  # the number of batches an idempotent producer may have in flight


@value
class WrittenBatch:
    """A batch in the log: its first and last sequence number, and its base offset."""

    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=_BATCHES_REMEMBERED))


class Producers:
    """Epoch and latest batches of each producer id in this partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

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

    def refuse(self, header: BatchHeader) -> Refusal | None:
        """Return why this batch is not the next: 47 (an older epoch), 45 (a gap, or an old duplicate), or None.

        An unknown producer may start with any sequence number, because its earlier batches may have been deleted.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch, sequence = header.producer_epoch, header.base_sequence
        if epoch < producer.epoch:
            return Refusal(
                Error.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} is {epoch}, smaller than the last seen epoch {producer.epoch}",
            )
        if epoch > producer.epoch:
            expected = 0
        else:
            last = producer.batches[-1].last_sequence
            expected = 0 if last == SEQUENCE_MAX else last + 1
        if sequence == expected:
            return None
        return Refusal(
            Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id}, epoch {epoch}: "
            f"{sequence} (incoming seq. number), {expected} (expected seq. number)",
        )

    def appended(self, header: BatchHeader, base_offset: int) -> None:
        """Record a batch that was written."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        producer.batches.append(WrittenBatch(header.base_sequence, _last_sequence(header), base_offset))


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % (SEQUENCE_MAX + 1)
