"""The state that all handlers of the transaction APIs share: transactional ids, writes in flight, pending effects.

A transactional id changes only through `change`: the new state is written to `__transaction_state`, and holds once it
is durable. Meanwhile the id is busy. Kafka: `TransactionStateManager`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..data.features import TRANSACTION_VERSION
from ..data.topic import TRANSACTIONS_TOPIC
from ..dialect import dialect_of
from ..effects import AppendTransaction, Reply, SendRequest
from ..timers import AbortTimedOut, ExpireTransactionalIds, Timers, TransactionTimerKey
from .facts import TransactionChanged
from .transaction import TransactionalId, TransactionChange, TransactionData
from .transitions import TransactionStatus, next_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.apis import Message

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Answer, Call, Effect
    from .markers import MarkersInFlight
    from .transitions import TransactionCause

NEVER_MS = 2**31 - 1
"""The timeout of a transaction that never times out."""

CHECKED_IDLE = (TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)
"""The states in which a transactional id may expire."""


class TransactionStore:
    """The transactional ids of one node: those whose `__transaction_state` partition it leads."""

    def __init__(self, now: int, cluster: ClusterState, settings: Settings, owned: Iterable[int] = ()) -> None:
        self.cluster = cluster
        self.settings = settings
        self.dialect = dialect_of(settings)
        self.transactions: dict[str, TransactionalId] = {}
        self.owned = dict.fromkeys(owned, 0)
        """The led partitions, with their leader epochs: a marker's coordinator epoch."""
        self.loading: set[int] = set()
        self.timers: Timers[TransactionTimerKey] = Timers()
        self.writes: dict[int, TransactionalId] = {}
        self.markers: dict[int, MarkersInFlight] = {}
        self._started_at = now
        self._out: list[Effect] = []
        self.newest_write = 0
        """The token of the newest write."""

    @property
    def transaction_version(self) -> int:
        """The level of the feature `transaction.version`: 1 writes records of version 1, 2 raises epochs (KIP-890)."""
        return self.cluster.features.level(TRANSACTION_VERSION)

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that stores a transactional id."""
        return self.cluster.partition_of(transactional_id, TRANSACTIONS_TOPIC)

    def status(self, transactional_id: str) -> Error:
        """Return NONE if this node serves the transactional id, else INVALID_REQUEST (for ""), 14 or 16."""
        if not transactional_id:
            return Error.INVALID_REQUEST
        partition = self.partition_of(transactional_id)
        if partition in self.loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return Error.NONE if partition in self.owned else Error.NOT_COORDINATOR

    def create(self, now: int, transactional_id: str, producer_id: int, timeout_ms: int) -> TransactionalId:
        """Create a transactional id without an epoch."""
        data = TransactionData(
            producer_id=producer_id, previous_producer_id=producer_id, timeout_ms=timeout_ms, updated_ms=now
        )
        return self.add(now, TransactionalId(transactional_id, self.partition_of(transactional_id), data))

    def add(self, now: int, transaction: TransactionalId) -> TransactionalId:
        """Add a transactional id, created or loaded, and schedule the checks that may end or expire it."""
        self.transactions[transaction.id] = transaction
        self.schedule_checks(now, transaction.data)
        return transaction

    def schedule_checks(self, now: int, data: TransactionData) -> None:
        """Schedule the periodic checks, at multiples of their interval since the node started, while there is work."""
        settings = self.settings
        if data.status is TransactionStatus.ONGOING and data.timeout_ms < NEVER_MS:
            interval = settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
            self._schedule(AbortTimedOut(), max(now, data.started_ms + data.timeout_ms) + 1, interval)
        elif data.status in CHECKED_IDLE:
            interval = settings.transaction_remove_expired_transaction_cleanup_interval_ms
            due = data.updated_ms + settings.transactional_id_expiration_ms
            self._schedule(ExpireTransactionalIds(), max(now, due) + 1, interval)

    def _schedule(self, key: AbortTimedOut | ExpireTransactionalIds, due: int, interval_ms: int) -> None:
        check = self._started_at + max(1, -((self._started_at - due) // interval_ms)) * interval_ms
        set_for = self.timers.get(key)
        if set_for is None or check < set_for:
            self.timers.set(key, check)

    def refuse_version_2(self, transaction: TransactionalId) -> Error:
        """Return UNSUPPORTED_VERSION if `transaction.version` is 0, and leave the transactional id busy.

        Records of version 0 cannot name the client's level. Kafka fails to write one after the change is pending, and
        forgets the change when it loads the id again (`TransactionLog.valueToBytes`).
        """
        if self.transaction_version:
            return Error.NONE
        transaction.is_stuck = True
        return Error.UNSUPPORTED_VERSION

    def change(
        self,
        now: int,
        transaction: TransactionalId,
        cause: TransactionCause,
        answer: Answer | None = None,
        /,
        **fields: object,
    ) -> None:
        """Write the state that `cause` leads to, with these fields replaced; `answer` waits for the write.

        Raises TransitionError if the cause does not apply to the current state.
        """
        status = next_status(transaction.data.status, cause)
        data = replace(transaction.data, status=status, updated_ms=now, **fields)  # type: ignore[arg-type]
        transaction.change = TransactionChange(data, cause, answer)
        tombstone = status is TransactionStatus.DEAD
        self.newest_write += 1
        self.writes[self.newest_write] = transaction
        record = None if tombstone else data.record(self.dialect)
        self.emit(AppendTransaction(self.newest_write, transaction.partition, transaction.id, record))

    def take_back(self, newest: int) -> None:
        """Give up the changes of this input after its write `newest`, because a bug has ended it."""
        for token in [each for each in self.writes if each > newest]:
            self.writes.pop(token).change = None
        self._out = [
            effect for effect in self._out if not (isinstance(effect, AppendTransaction) and effect.token > newest)
        ]

    def apply(self, now: int, transaction: TransactionalId, change: TransactionChange) -> None:
        """Make a change that is durable the state of its transactional id."""
        before, transaction.data = transaction.data.status, change.data
        if change.data.status is TransactionStatus.DEAD:
            del self.transactions[transaction.id]
        else:
            self.schedule_checks(now, change.data)
        data = change.data
        self.emit(
            TransactionChanged(
                transactional_id=transaction.id,
                before=before.value,
                after=data.status.value,
                producer_id=data.producer_id,
                epoch=data.epoch,
                partitions=tuple(sorted(data.partitions)),
                cause=change.cause.value,
                client_id=transaction.client_id,
            )
        )

    def send(self, node_id: int, version: int, request: Message) -> int:
        """Send a request to another broker (or this one); return the token of its response."""
        token = next(self.cluster.request_tokens)
        self.emit(SendRequest(node_id, token, version, request))
        return token

    def reply(self, call: Call, response: Message, reason: str = "") -> None:
        """Answer a call, with the reason of a refusal that the response does not show."""
        self.emit(Reply(call, response, reason))

    def emit(self, effect: Effect) -> None:
        """Add an effect to the result of this input."""
        self._out.append(effect)

    def drain(self) -> list[Effect]:
        """Return the effects of this input."""
        out, self._out = self._out, []
        return out
