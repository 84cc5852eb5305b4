"""EndTxn, time-outs and fencing: how a transaction is decided (KIP-98, KIP-890).

Kafka: `TransactionCoordinator.endTransaction`, `prepareFenceProducerEpoch`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.end_txn import EndTxnResponse

from .transaction import EPOCH_MAX, NO_ID
from .transitions import TransactionCause, TransactionStatus

if TYPE_CHECKING:
    from koordinator.wire.messages.end_txn import EndTxnRequest

    from ..effects import Answer, Call
    from .transaction import TransactionalId, TransactionData
    from .transaction_store import TransactionStore

PRODUCER_FENCED_SINCE = 2
"""The first version of EndTxn and AddPartitionsToTxn whose clients know PRODUCER_FENCED (KIP-588)."""

BUMPS_SINCE = 5
"""The first version of EndTxn that raises the epoch (transaction version 2)."""

TV2 = 2
"""The transaction version from which every end of a transaction raises the epoch (KIP-890)."""

_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMMITTED, _ABORTED, _ = TransactionStatus

_REFUSED = {
    (_EMPTY, True): Error.INVALID_TXN_STATE,
    (_EMPTY, False): Error.INVALID_TXN_STATE,
    (_PREPARE_COMMIT, True): Error.CONCURRENT_TRANSACTIONS,
    (_PREPARE_COMMIT, False): Error.INVALID_TXN_STATE,
    (_PREPARE_ABORT, True): Error.INVALID_TXN_STATE,
    (_PREPARE_ABORT, False): Error.CONCURRENT_TRANSACTIONS,
    (_COMMITTED, True): Error.NONE,
    (_COMMITTED, False): Error.INVALID_TXN_STATE,
    (_ABORTED, True): Error.INVALID_TXN_STATE,
    (_ABORTED, False): Error.NONE,
}
"""The response, by state and result (commit or not), to an end that changes nothing: NONE for a repeated request."""


def end_txn(store: TransactionStore, now: int, call: Call, request: EndTxnRequest) -> None:
    """Decide a transaction; the response leaves when the decision is durable, before the markers are written."""
    error = store.status(request.transactional_id)
    transaction = store.transactions.get(request.transactional_id)
    if error is Error.NONE and transaction is None:
        error = Error.INVALID_PRODUCER_ID_MAPPING
    if transaction is None or error is not Error.NONE:
        return store.reply(call, refused(call, error))

    def answer(error: Error) -> EndTxnResponse:
        return refused(call, error) if error else ended(call, transaction.data)

    bumps = call.api_version >= BUMPS_SINCE
    check = _check_bumping_end if bumps else _check_end
    error_or_cause = check(transaction, request)
    if isinstance(error_or_cause, TransactionCause):
        error = store.refuse_version_2(transaction) if bumps else Error.NONE
        if error is Error.NONE:
            error = _decide(store, now, transaction, error_or_cause, (call, answer), bumps=bumps)
        if error is Error.NONE:
            return None
        error_or_cause = error
    elif error_or_cause is Error.NONE:
        return store.reply(call, ended(call, transaction.data))
    return store.reply(call, refused(call, error_or_cause))


def _check_end(transaction: TransactionalId, request: EndTxnRequest) -> Error | TransactionCause:
    """Return the cause of the decision, or the response to a request that changes nothing; v0-4."""
    data = transaction.data
    if request.producer_id != data.producer_id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch != data.epoch:
        return Error.PRODUCER_FENCED
    if transaction.is_busy:
        return Error.CONCURRENT_TRANSACTIONS
    if data.status is _ONGOING:
        return TransactionCause.COMMITTED if request.committed else TransactionCause.ABORTED
    return _REFUSED[data.status, request.committed]


def _check_bumping_end(transaction: TransactionalId, request: EndTxnRequest) -> Error | TransactionCause:
    """Return the same for v5 and later, where the previous epoch marks a repeated request."""
    data = transaction.data
    if transaction.is_busy:
        return Error.CONCURRENT_TRANSACTIONS
    is_repeat = request.producer_id == data.producer_id and request.producer_epoch + 1 == data.epoch
    left_exhausted = (
        data.epoch == 0
        and request.producer_id == data.previous_producer_id != data.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
    )
    is_complete = data.status in {_COMMITTED, _ABORTED}
    if request.producer_id != data.producer_id and not (left_exhausted and is_complete):
        return Error.INVALID_PRODUCER_ID_MAPPING
    if is_complete and (is_repeat or left_exhausted):
        return _REFUSED[data.status, request.committed]
    if request.producer_epoch != data.epoch:
        return Error.PRODUCER_FENCED
    if data.status is _ONGOING:
        return TransactionCause.COMMITTED if request.committed else TransactionCause.ABORTED
    return Error.INVALID_TXN_STATE if request.committed else TransactionCause.ABORTED_EMPTY


def fence(
    store: TransactionStore,
    now: int,
    transaction: TransactionalId,
    cause: TransactionCause,
    answer: Answer | None = None,
) -> Error:
    """Abort an ongoing transaction with an epoch above its producer's, so that the producer is fenced.

    With transaction version 2 that producer may resume with InitProducerId, unless another one has come (KIP-890).
    Before, the epoch is raised at once, and stays so if the write fails: no producer ever gets it.
    Returns COORDINATOR_LOAD_IN_PROGRESS, and does nothing, while there is no producer id to go on with.
    """
    data = transaction.data
    if store.transaction_version >= TV2:
        return _decide(store, now, transaction, cause, answer, bumps=True)
    if not (transaction.has_failed_fence and store.dialect.raises_epoch_once_to_fence):
        transaction.data = replace(data, epoch=data.epoch + 1, last_epoch=NO_ID)
    store.change(now, transaction, cause, answer)
    return Error.NONE


def _decide(
    store: TransactionStore,
    now: int,
    transaction: TransactionalId,
    cause: TransactionCause,
    answer: Answer | None,
    *,
    bumps: bool,
) -> Error:
    """Write the decision; COORDINATOR_LOAD_IN_PROGRESS if it needs a new producer id, and there is none."""
    data = transaction.data
    if not bumps:
        store.change(now, transaction, cause, answer, client_version=0)
        return Error.NONE
    next_id = store.cluster.producer_ids.next_id() if data.is_exhausted else NO_ID
    if next_id is None:
        return Error.COORDINATOR_LOAD_IN_PROGRESS
    store.change(
        now,
        transaction,
        cause,
        answer,
        epoch=data.epoch + 1,
        last_epoch=data.epoch,
        next_producer_id=next_id,
        started_ms=now if cause is TransactionCause.ABORTED_EMPTY else data.started_ms,
        client_version=TV2,
    )
    return Error.NONE


def ended(call: Call, data: TransactionData) -> EndTxnResponse:
    """Return the response to a decided transaction, with the identity of the next one from v5 on."""
    if call.api_version < BUMPS_SINCE:
        return EndTxnResponse()
    if data.next_producer_id != NO_ID:
        return EndTxnResponse(producer_id=data.next_producer_id, producer_epoch=0)
    return EndTxnResponse(producer_id=data.producer_id, producer_epoch=data.epoch)


def refused(call: Call, error: Error) -> EndTxnResponse:
    """Return an error response, with the error that a client of this version knows."""
    return EndTxnResponse(error_code=fenced_error(call, error))


def fenced_error(call: Call, error: Error) -> Error:
    """Return INVALID_PRODUCER_EPOCH in place of PRODUCER_FENCED for clients that do not know it."""
    if error is Error.PRODUCER_FENCED and call.api_version < PRODUCER_FENCED_SINCE:
        return Error.INVALID_PRODUCER_EPOCH
    return error
