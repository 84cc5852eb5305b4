"""The markers of a decided transaction: sent to the leader of each partition, until all are written.

Kafka: `TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from koordinator.wire.values import value

from ..data.topic import NO_LEADER
from ..timers import RetryMarkers
from .transaction import NO_ID
from .transitions import TransactionCause, TransactionStatus

if TYPE_CHECKING:
    from .transaction import TopicPartition, TransactionalId
    from .transaction_store import TransactionStore

RETRY_MS = 100
"""The time after which a marker is sent again, as with Kafka's `request.timeout` of the sender's poll."""

DELAYED, LOST = "delayed", "lost"
"""A test's fault in the markers of a partition (`ClusterState.marker_faults`)."""

_GIVES_UP = {Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED}
_STRUCK_OFF = {Error.NONE, Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_FOR_MESSAGE_FORMAT}


@value
class MarkersInFlight:
    """A WriteTxnMarkers request that awaits its response."""

    transactional_id: str
    partitions: frozenset[TopicPartition]


def send_all(store: TransactionStore, now: int, transaction: TransactionalId) -> None:
    """Send the markers of a decided transaction, or complete it if there are none to write."""
    transaction.unmarked = set(transaction.data.partitions)
    transaction.is_stuck = False
    transaction.completes_ms = now
    send(store, now, transaction, transaction.unmarked)


def send(store: TransactionStore, now: int, transaction: TransactionalId, partitions: set[TopicPartition]) -> None:
    """Send the markers of these partitions to their leaders; a partition that no longer exists needs none.

    A partition without a leader is tried again, but skipped since 4.3. A test may delay the marker of a partition, or
    lose it (`ClusterState.marker_faults`).
    """
    by_leader: dict[int, list[TopicPartition]] = {}
    for at in sorted(partitions):
        topic = store.cluster.topics.find(at[0])
        fault = store.cluster.marker_faults.get(at)
        leader = NO_LEADER if topic is None else topic.leader(at[1])
        is_skipped = leader == NO_LEADER and store.dialect.skips_markers_without_leader
        if topic is None or at[1] >= len(topic.logs) or is_skipped or fault == LOST:
            transaction.unmarked.discard(at)
        else:
            by_leader.setdefault(NO_LEADER if fault else leader, []).append(at)
    if by_leader.pop(NO_LEADER, None):
        store.timers.set(RetryMarkers(transaction.id), now + RETRY_MS)
    data = transaction.data
    for leader, at_leader in by_leader.items():
        topics: dict[str, list[int]] = {}
        for name, partition in at_leader:
            topics.setdefault(name, []).append(partition)
        marker = WritableTxnMarker(
            producer_id=data.producer_id,
            producer_epoch=data.epoch,
            transaction_result=data.status is TransactionStatus.PREPARE_COMMIT,
            topics=tuple(
                WritableTxnMarkerTopic(name=name, partition_indexes=tuple(ids)) for name, ids in topics.items()
            ),
            coordinator_epoch=store.owned[transaction.partition],
            transaction_version=data.client_version,
        )
        token = store.send(leader, store.dialect.write_txn_markers_version, WriteTxnMarkersRequest(markers=(marker,)))
        store.markers[token] = MarkersInFlight(transaction.id, frozenset(at_leader))
    complete(store, transaction)


def answered(store: TransactionStore, now: int, token: int, response: WriteTxnMarkersResponse | None) -> None:
    """Strike off the partitions whose marker is written; send the others again, or give up (47, 52).

    `response` is None if the leader could not be reached.
    """
    sent = store.markers.pop(token)
    transaction = store.transactions.get(sent.transactional_id)
    if transaction is None or transaction.partition not in store.owned or transaction.is_stuck:
        return
    errors = dict.fromkeys(sent.partitions, Error.NETWORK_EXCEPTION)
    for marker in response.markers if response is not None else ():
        for topic in marker.topics:
            for row in topic.partitions:
                errors[topic.name, row.partition_index] = Error(row.error_code)
    transaction.unmarked -= {at for at, error in errors.items() if error in _STRUCK_OFF}
    if _GIVES_UP & set(errors.values()):
        transaction.is_stuck = True
        return
    if transaction.unmarked & sent.partitions:
        store.timers.set(RetryMarkers(transaction.id), now + RETRY_MS)
    complete(store, transaction)


def retry(store: TransactionStore, now: int, transactional_id: str) -> None:
    """Send the markers that are neither written nor in flight again."""
    transaction = store.transactions.get(transactional_id)
    if transaction is not None and not transaction.is_stuck:
        in_flight = [sent.partitions for sent in store.markers.values() if sent.transactional_id == transactional_id]
        send(store, now, transaction, transaction.unmarked.difference(*in_flight))


def complete(store: TransactionStore, transaction: TransactionalId) -> None:
    """Complete a transaction all of whose markers are written; exhausted epochs continue with a new producer id."""
    data = transaction.data
    if transaction.unmarked or transaction.change is not None or not data.status.is_prepared:
        return
    store.timers.cancel(RetryMarkers(transaction.id))
    continues = data.next_producer_id != NO_ID
    store.change(
        transaction.completes_ms,
        transaction,
        TransactionCause.MARKERS_WRITTEN,
        producer_id=data.next_producer_id if continues else data.producer_id,
        previous_producer_id=data.producer_id,
        next_producer_id=NO_ID,
        epoch=0 if continues else data.epoch,
        partitions=frozenset(),
    )
