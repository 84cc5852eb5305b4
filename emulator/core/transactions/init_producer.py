"""InitProducerId of a transactional producer (KIP-98, KIP-360).

Kafka: `TransactionCoordinator.handleInitProducerId`, `prepareInitProducerIdTransit`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.init_producer_id import InitProducerIdResponse

from . import ending
from .transaction import EPOCH_MAX, NO_ID
from .transitions import TransactionCause, TransactionStatus

if TYPE_CHECKING:
    from koordinator.wire.messages.init_producer_id import InitProducerIdRequest

    from ..effects import Answer, Call
    from .transaction import TransactionalId
    from .transaction_store import TransactionStore

PRODUCER_FENCED_SINCE = 4
"""The first version whose clients know PRODUCER_FENCED (KIP-588); earlier ones get INVALID_PRODUCER_EPOCH."""


def init_producer_id(store: TransactionStore, now: int, call: Call, request: InitProducerIdRequest) -> None:
    """Give the producer of a transactional id the next epoch; abort an open transaction (CONCURRENT_TRANSACTIONS)."""
    transactional_id = request.transactional_id or ""
    error = _refuse_request(store, request)
    if error is not Error.NONE:
        return store.reply(call, refused(call, error), _reason(store, request, error))
    transaction = store.transactions.get(transactional_id)
    if transaction is None:
        new_id = store.cluster.producer_ids.next_id()
        if new_id is None:
            return store.reply(call, refused(call, Error.COORDINATOR_LOAD_IN_PROGRESS))
        transaction = store.create(now, transactional_id, new_id, request.transaction_timeout_ms)
    data = transaction.data
    resumes = request.producer_id != NO_ID
    if transaction.is_busy:
        error = Error.CONCURRENT_TRANSACTIONS
    elif resumes and not _may_resume(transaction, request.producer_id, request.producer_epoch):
        error = Error.PRODUCER_FENCED
    elif data.status.is_prepared:
        error = Error.CONCURRENT_TRANSACTIONS
    elif data.status is TransactionStatus.ONGOING:
        answer: Answer = (call, lambda error: refused(call, error or Error.CONCURRENT_TRANSACTIONS))
        error = ending.fence(store, now, transaction, TransactionCause.FENCED, answer)
        if error is Error.NONE:
            return None
    if error is not Error.NONE:
        return store.reply(call, refused(call, error))
    identity = _next_identity(store, transaction, request)
    if isinstance(identity, Error):
        return store.reply(call, refused(call, identity))
    producer_id, epoch, last_epoch = identity
    transaction.client_id = call.client_id
    return store.change(
        now,
        transaction,
        TransactionCause.INITIALIZED,
        (call, partial(_initialized, call, transaction)),
        producer_id=producer_id,
        previous_producer_id=data.producer_id,
        next_producer_id=NO_ID,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=request.transaction_timeout_ms,
        partitions=frozenset(),
        started_ms=NO_ID if store.dialect.init_clears_transaction_start else data.started_ms,
    )


def _initialized(call: Call, transaction: TransactionalId, error: Error) -> InitProducerIdResponse:
    """Return the response once the write has ended."""
    if error is not Error.NONE:
        return refused(call, error)
    return InitProducerIdResponse(producer_id=transaction.data.producer_id, producer_epoch=transaction.data.epoch)


def _refuse_request(store: TransactionStore, request: InitProducerIdRequest) -> Error:
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID):
        return Error.INVALID_REQUEST
    error = store.status(request.transactional_id or "")
    if error is Error.NONE and not 0 < request.transaction_timeout_ms <= store.settings.transaction_max_timeout_ms:
        return Error.INVALID_TRANSACTION_TIMEOUT
    return error


def _reason(store: TransactionStore, request: InitProducerIdRequest, error: Error) -> str:
    """Return for the trace and the log why a timeout is refused; Kafka's response has no message."""
    if error is not Error.INVALID_TRANSACTION_TIMEOUT:
        return ""
    given, maximum = request.transaction_timeout_ms, store.settings.transaction_max_timeout_ms
    return f"transaction.timeout.ms={given} must be from 1 to {maximum} (transaction.max.timeout.ms)"


def _may_resume(transaction: TransactionalId, producer_id: int, epoch: int) -> bool:
    """Return whether a producer that names its identity is the current one, or was until its epochs ran out."""
    data = transaction.data
    was_exhausted = producer_id == data.previous_producer_id and epoch >= EPOCH_MAX - 1
    return data.epoch == NO_ID or producer_id == data.producer_id or was_exhausted


def _next_identity(
    store: TransactionStore, transaction: TransactionalId, request: InitProducerIdRequest
) -> tuple[int, int, int] | Error:
    """Return producer id, epoch and last epoch; PRODUCER_FENCED for an epoch that is not the producer's own."""
    data, epoch = transaction.data, request.producer_epoch
    if data.epoch == NO_ID:
        return data.producer_id, 0, NO_ID
    resumes = epoch != NO_ID
    is_repeat = resumes and (epoch == data.last_epoch or request.producer_id != data.producer_id)
    if is_repeat and epoch != data.epoch:
        return data.producer_id, data.epoch, data.last_epoch
    if resumes and epoch != data.epoch:
        return Error.PRODUCER_FENCED
    last_epoch = data.epoch if resumes else NO_ID
    if not data.is_exhausted:
        return data.producer_id, data.epoch + 1, last_epoch
    new_id = store.cluster.producer_ids.next_id()
    return Error.COORDINATOR_LOAD_IN_PROGRESS if new_id is None else (new_id, 0, last_epoch)


def refused(call: Call, error: Error) -> InitProducerIdResponse:
    """Return an error response, with the error that a client of this version knows."""
    if error is Error.PRODUCER_FENCED and call.api_version < PRODUCER_FENCED_SINCE:
        error = Error.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=error, producer_id=NO_ID, producer_epoch=NO_ID)
