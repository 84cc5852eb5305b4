"""A transactional id: its state as a value, and the change of it that is being written.

Kafka: `TransactionMetadata`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.messages.transactions_topic import PartitionsSchema, TransactionLogValue
from koordinator.wire.values import mutable, value

from .transitions import TransactionStatus

if TYPE_CHECKING:
    from ..dialect import Dialect
    from ..effects import Answer
    from .transitions import TransactionCause

NO_ID = -1
"""The producer id and epoch of a transactional id that has none, and the start time before its first transaction."""

EPOCH_MAX = 2**15 - 1
"""The largest epoch. No producer gets it; it fences the last one of a producer id."""

TopicPartition = tuple[str, int]

_STATUSES = {status.number: status for status in TransactionStatus}


@value
class TransactionData:
    """The durable state of a transactional id; times are in ms.

    `last_epoch` is the epoch from which the producer itself moved on, so that it may repeat the request (KIP-360); it
    is not stored. `client_version` is the transaction version of the client that made the last change.
    """

    producer_id: int
    epoch: int = NO_ID
    last_epoch: int = NO_ID
    previous_producer_id: int = NO_ID
    next_producer_id: int = NO_ID
    timeout_ms: int = 0
    status: TransactionStatus = TransactionStatus.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_ID
    updated_ms: int = 0
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the next epoch would be one that no producer gets."""
        return self.epoch >= EPOCH_MAX - 1

    def record(self, dialect: Dialect) -> TransactionLogValue:
        """Return the record of this state, as a release writes it."""
        is_empty = self.status is TransactionStatus.EMPTY
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            topics.setdefault(topic, []).append(partition)
        rows = tuple(PartitionsSchema(topic=topic, partition_ids=tuple(ids)) for topic, ids in topics.items())
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id if dialect.stores_changes_of_producer_ids else NO_ID,
            next_producer_id=self.next_producer_id if dialect.stores_changes_of_producer_ids else NO_ID,
            producer_epoch=self.epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.status.number,
            transaction_partitions=None if is_empty else rows,
            transaction_last_update_timestamp_ms=self.updated_ms,
            # releases that show the last start in state Empty forget it with the next load
            transaction_start_timestamp_ms=NO_ID if is_empty else self.started_ms,
            client_transaction_version=self.client_version,
        )


def loaded_state(record: TransactionLogValue) -> TransactionData:
    """Return the state that a record holds. Raises KeyError for an unknown status."""
    return TransactionData(
        producer_id=record.producer_id,
        epoch=record.producer_epoch,
        previous_producer_id=record.previous_producer_id,
        next_producer_id=record.next_producer_id,
        timeout_ms=record.transaction_timeout_ms,
        status=_STATUSES[record.transaction_status],
        partitions=frozenset(
            (topic.topic, partition)
            for topic in record.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_ms=record.transaction_start_timestamp_ms,
        updated_ms=record.transaction_last_update_timestamp_ms,
        client_version=record.client_transaction_version,
    )


@value
class TransactionChange:
    """A change that is being written: the new state, why, and the answer that waits for it, if any."""

    data: TransactionData
    cause: TransactionCause
    answer: Answer | None = None


@mutable
class TransactionalId:
    """A transactional id on its coordinator.

    While `change` is set, requests that would change something get CONCURRENT_TRANSACTIONS. `unmarked` holds the
    partitions whose marker is not written yet. `is_stuck` until a move of the coordinator: a leader has refused a
    marker for good, or a change cannot be recorded. `client_id` is that of the last InitProducerId, "" after a move.
    `has_failed_fence` while the record of the raised epoch could not be written (`TransactionMetadata`).
    `completes_ms` is the update time of the completed transaction: that of its first markers, as in Kafka.
    """

    id: str
    partition: int
    data: TransactionData
    change: TransactionChange | None = None
    unmarked: set[TopicPartition] = field(default_factory=set)
    is_stuck: bool = False
    client_id: str = ""
    has_failed_fence: bool = False
    completes_ms: int = NO_ID

    @property
    def is_busy(self) -> bool:
        """Whether a change or the transaction's markers are being written, or never will be."""
        return self.change is not None or self.data.status.is_prepared or self.is_stuck
