"""The transaction coordinator of one node: requests, time, completed writes and responses in, effects out.

It owns partitions of `__transaction_state` and the transactional ids stored in them. Times are the node's, in ms.
Kafka: `TransactionCoordinator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

from ..data.topic import TRANSACTIONS_TOPIC
from ..effects import Failed
from ..timers import AbortTimedOut, ExpireTransactionalIds, RetryMarkers
from ..write_errors import new_write_error
from . import adding, describing, ending, init_producer, markers
from .transaction import TransactionalId, loaded_state
from .transaction_store import CHECKED_IDLE, TransactionStore
from .transitions import FENCING, TransactionCause, TransactionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from koordinator.wire.messages.transactions_topic import TransactionLogValue
    from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersResponse

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Call, Effect
    from .transaction import TransactionChange

HANDLERS: Mapping[int, Callable[[TransactionStore, int, Call, Any], None]] = {
    ApiKey.INIT_PRODUCER_ID: init_producer.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: adding.add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: adding.add_offsets,
    ApiKey.END_TXN: ending.end_txn,
    ApiKey.DESCRIBE_TRANSACTIONS: describing.describe,
    ApiKey.LIST_TRANSACTIONS: describing.list_,
}
"""The handler of each API; called with the store, the node's time, the call and the request."""


class TransactionCoordinator:
    """The transactional ids of one node, with the behaviour of the configured release (`kafka.version`)."""

    serves = frozenset(HANDLERS)

    def __init__(self, now: int, cluster: ClusterState, settings: Settings) -> None:
        self.store = TransactionStore(now, cluster, settings)

    def handle(self, now: int, call: Call, request: object) -> list[Effect]:
        """Serve one request of a transaction API; the timers due by `now` have fired."""
        newest = self.store.newest_write
        try:
            HANDLERS[call.api_key](self.store, now, call, request)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            self.store.take_back(newest)
            self.store.emit(Failed(error, (call,)))
        return self.store.drain()

    def tick(self, now: int) -> list[Effect]:
        """Fire the timers due by `now`, each at its own deadline."""
        self._fire_due(now)
        return self.store.drain()

    def deadline(self) -> int | None:
        """Return the node time of the next `tick`, or None if no timer is set."""
        return self.store.timers.next_deadline

    def appended(self, now: int, token: int, error: Error) -> list[Effect]:
        """Complete the write with this token, successfully (NONE) or not, and answer the request that waited for it."""
        self._fire_due(now - 1)
        self._appended(now, token, error)
        return self.store.drain()

    def _appended(self, now: int, token: int, error: Error) -> None:
        store, transaction = self.store, self.store.writes.pop(token, None)
        if transaction is None or transaction.change is None:
            # `unload` has failed this write already
            return
        change, transaction.change = transaction.change, None
        if error is Error.NONE:
            store.apply(now, transaction, change)
        if change.answer is not None:
            call, answer = change.answer
            response = answer(new_write_error(error))
            if response is not None:
                store.reply(call, response)
        if error is not Error.NONE:
            self._write_failed(now, transaction, change)
        elif change.data.status.is_prepared:
            transaction.has_failed_fence = False
            markers.send_all(store, now, transaction)

    def _write_failed(self, now: int, transaction: TransactionalId, change: TransactionChange) -> None:
        if change.cause is TransactionCause.MARKERS_WRITTEN:
            self.store.timers.set(RetryMarkers(transaction.id), now + markers.RETRY_MS)
            return
        if change.cause in FENCING and transaction.data.epoch == change.data.epoch:
            transaction.has_failed_fence = True
        # a check that made this change, or found the id busy, has to come back
        self.store.schedule_checks(now, transaction.data)

    def abort(self, now: int, transactional_id: str, cause: TransactionCause) -> list[Effect]:
        """Abort an ongoing transaction for a test, and fence its producer as a timeout does.

        Raises ValueError, and changes nothing, if there is nothing to abort.
        """
        self._fire_due(now)
        transaction = self.store.transactions[transactional_id]
        status = transaction.data.status
        if status is not TransactionStatus.ONGOING or transaction.is_busy:
            raise ValueError(f"transaction {transactional_id!r} is {status.value}: only an Ongoing one can be aborted")
        ending.fence(self.store, now, transaction, cause)
        return self.store.drain()

    def answered(self, now: int, token: int, response: WriteTxnMarkersResponse | None) -> list[Effect]:
        """Take the response to a request of `SendRequest`; None if the broker could not be reached."""
        self._fire_due(now - 1)
        if token in self.store.markers:
            markers.answered(self.store, now, token, response)
        return self.store.drain()

    def begin_load(self, now: int, partition: int) -> list[Effect]:
        """Take over a partition of `__transaction_state`; its transactional ids answer "loading" until `loaded`."""
        self._fire_due(now)
        self.store.owned[partition] = self.store.cluster.planned_topic(TRANSACTIONS_TOPIC).epochs[partition]
        self.store.loading.add(partition)
        return self.store.drain()

    def loaded(
        self, now: int, partition: int, records: Iterable[tuple[str, TransactionLogValue | None]]
    ) -> list[Effect]:
        """Load the records of a partition, oldest first; markers of decided transactions are sent again."""
        self._fire_due(now)
        store = self.store
        store.loading.discard(partition)
        latest = dict(records)
        for transactional_id, record in latest.items():
            if record is not None:
                transaction = store.add(now, TransactionalId(transactional_id, partition, loaded_state(record)))
                if transaction.data.status.is_prepared:
                    markers.send_all(store, now, transaction)
        return store.drain()

    def load_failed(self, now: int, partition: int) -> list[Effect]:
        """Serve a partition whose records cannot be read without its transactional ids, as Kafka does."""
        return self.loaded(now, partition, ())

    def unload(self, now: int, partition: int) -> list[Effect]:
        """Give up a partition to another coordinator; requests that wait for a write fail with NOT_COORDINATOR."""
        self._fire_due(now)
        store = self.store
        store.owned.pop(partition, None)
        store.loading.discard(partition)
        for token in [token for token, transaction in store.writes.items() if transaction.partition == partition]:
            self._appended(now, token, Error.NOT_COORDINATOR)
        for transaction in [each for each in store.transactions.values() if each.partition == partition]:
            store.timers.cancel(RetryMarkers(transaction.id))
            del store.transactions[transaction.id]
        return store.drain()

    def _fire_due(self, now: int) -> None:
        while (fired := self.store.timers.pop_due(now)) is not None:
            due, key = fired
            match key:
                case AbortTimedOut():
                    self._abort_timed_out(due)
                case ExpireTransactionalIds():
                    self._expire(due)
                case RetryMarkers(transactional_id):
                    markers.retry(self.store, due, transactional_id)
                case _:
                    assert_never(key)

    def _abort_timed_out(self, now: int) -> None:
        for transaction in self.store.transactions.values():
            data = transaction.data
            if data.status is not TransactionStatus.ONGOING:
                continue
            if not transaction.is_busy and data.started_ms + data.timeout_ms < now:
                ending.fence(self.store, now, transaction, TransactionCause.TIMED_OUT)
            else:
                self.store.schedule_checks(now, data)

    def _expire(self, now: int) -> None:
        idle_ms = self.store.settings.transactional_id_expiration_ms
        for transaction in self.store.transactions.values():
            data = transaction.data
            if data.status not in CHECKED_IDLE or transaction.is_busy:
                continue
            if data.updated_ms + idle_ms < now:
                self.store.change(now, transaction, TransactionCause.EXPIRED)
            else:
                self.store.schedule_checks(now, data)
