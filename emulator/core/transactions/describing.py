"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152).

Kafka: `TransactionCoordinator.handleDescribeTransactions`, `TransactionStateManager.listTransactionStates`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import describe_transactions, list_transactions

from ..expressions import InvalidExpressionError, compiled
from .transitions import TransactionStatus

if TYPE_CHECKING:
    from ..effects import Call
    from .transaction_store import TransactionStore

_FILTERS = {*(status.value for status in TransactionStatus), "PrepareEpochFence"}
"""The names that a state filter may have; no listed transaction is Dead or in PrepareEpochFence."""


def describe(
    store: TransactionStore, _now: int, call: Call, request: describe_transactions.DescribeTransactionsRequest
) -> None:
    """Return a row for each transactional id; TRANSACTIONAL_ID_NOT_FOUND for an unknown one."""
    rows = tuple(_row(store, transactional_id) for transactional_id in request.transactional_ids)
    store.reply(call, describe_transactions.DescribeTransactionsResponse(transaction_states=rows))


def _row(store: TransactionStore, transactional_id: str) -> describe_transactions.TransactionState:
    error = store.status(transactional_id)
    transaction = store.transactions.get(transactional_id)
    if error is Error.NONE and transaction is None:
        error = Error.TRANSACTIONAL_ID_NOT_FOUND
    if transaction is None or error is not Error.NONE:
        return describe_transactions.TransactionState(error_code=error, transactional_id=transactional_id)
    data = transaction.data
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.unmarked if data.status.is_prepared else data.partitions):
        topics.setdefault(topic, []).append(partition)
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=data.status.value,
        transaction_timeout_ms=data.timeout_ms,
        transaction_start_time_ms=data.started_ms,
        producer_id=data.producer_id,
        producer_epoch=data.epoch,
        topics=tuple(
            describe_transactions.TopicData(topic=topic, partitions=tuple(ids)) for topic, ids in topics.items()
        ),
    )


def list_(store: TransactionStore, now: int, call: Call, request: list_transactions.ListTransactionsRequest) -> None:
    """Return this node's transactional ids that match every filter; 14 while one of its partitions is being loaded.

    An id that never had a transaction began at -1, so that every duration filter matches it, as in Kafka.
    """
    if store.loading:
        refused = list_transactions.ListTransactionsResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
        return store.reply(call, refused)
    try:
        pattern = compiled(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except InvalidExpressionError:
        refused = list_transactions.ListTransactionsResponse(error_code=Error.INVALID_REGULAR_EXPRESSION)
        return store.reply(call, refused)
    rows = tuple(
        list_transactions.TransactionState(
            transactional_id=transaction.id,
            producer_id=transaction.data.producer_id,
            transaction_state=transaction.data.status.value,
        )
        for transaction in store.transactions.values()
        if (not request.state_filters or transaction.data.status.value in request.state_filters)
        and (not request.producer_id_filters or transaction.data.producer_id in request.producer_id_filters)
        and (request.duration_filter < 0 or now - transaction.data.started_ms > request.duration_filter)
        and (pattern is None or pattern.fullmatch(transaction.id))
    )
    unknown = tuple(name for name in dict.fromkeys(request.state_filters) if name not in _FILTERS)
    return store.reply(
        call, list_transactions.ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows)
    )
