"""Listing the transactions of a cluster, each described by its coordinator (KIP-664), and aborting them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from koordinator.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

from .admin import COORDINATOR_MOVES
from .errors import Failure, RequiredVersion, broker_failure
from .groups import GroupFailure, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .admin import Admin, BrokerNode
    from .connection import BrokerConnection

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
"""The states in the spelling of ListTransactions."""

ONGOING = "Ongoing"

_BUSY = COORDINATOR_MOVES | {Error.CONCURRENT_TRANSACTIONS}
"""The errors of InitProducerId while the transaction is being aborted."""

_INIT = RequiredVersion(ApiKey.INIT_PRODUCER_ID, 0, "0.11")
_LIST = RequiredVersion(ApiKey.LIST_TRANSACTIONS, 0, "3.0")
_DESCRIBE = RequiredVersion(ApiKey.DESCRIBE_TRANSACTIONS, 0, "3.0")


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id. `started_ms` is in ms since the epoch, -1 before the first transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: dict[str, tuple[int, ...]]
    coordinator: BrokerNode


def list_transactions(admin: Admin, states: Sequence[str] = ()) -> Result[TransactionDescription]:
    """Return the transactional ids of every broker, or those in some of STATES.

    Each broker that cannot list its transactions is a failure.
    """

    def call(
        connection: BrokerConnection, node: BrokerNode, _: list[BrokerNode]
    ) -> dict[BrokerNode, tuple[TransactionDescription, ...] | Failure]:
        request = ListTransactionsRequest(state_filters=tuple(states))
        listed = connection.send(request, connection.version(_LIST), ListTransactionsResponse)
        if listed.error_code != Error.NONE:
            return {node: broker_failure(listed.error_code, retriable=COORDINATOR_MOVES)}
        wanted = DescribeTransactionsRequest(
            transactional_ids=tuple(row.transactional_id for row in listed.transaction_states)
        )
        described = connection.send(wanted, connection.version(_DESCRIBE), DescribeTransactionsResponse)
        # an id may expire or move between the two requests
        rows = (row for row in described.transaction_states if row.error_code == Error.NONE)
        return {node: tuple(_description(row, node) for row in rows)}

    results = admin.retry(admin.brokers(), lambda pending: admin.at_brokers({node: node for node in pending}, call))
    failures = [GroupFailure(each, broker=node) for node, each in results.items() if isinstance(each, Failure)]
    found = {row.transactional_id: row for rows in results.values() if isinstance(rows, tuple) for row in rows}
    return Result(tuple(found[name] for name in sorted(found)), tuple(failures))


def abort_transactions(admin: Admin, ids: Sequence[str]) -> Result[str]:
    """Abort Ongoing transactions and fence their producers, as `Admin.fenceProducers` does (KIP-360).

    An id without an Ongoing transaction is a failure: nothing is changed.
    """
    listed = list_transactions(admin)
    found = {each.transactional_id: each for each in listed.successes}
    coordinators: dict[str, BrokerNode | Failure] = {}
    for name in ids:
        state = found[name].state if name in found else None
        problem = "there is no such transactional id" if state is None else f"it is {state}, not {ONGOING}"
        coordinators[name] = found[name].coordinator if state == ONGOING else Failure(None, problem)

    def call(connection: BrokerConnection, _: BrokerNode, names: list[str]) -> dict[str, Failure | None]:
        answers = {}
        for name in names:
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=found[name].timeout_ms)
            answer = connection.send(request, connection.version(_INIT), InitProducerIdResponse)
            is_done = answer.error_code == Error.NONE
            answers[name] = None if is_done else broker_failure(answer.error_code, retriable=_BUSY)
        return answers

    results = admin.retry(ids, lambda pending: admin.at_brokers({name: coordinators[name] for name in pending}, call))
    failures = [
        GroupFailure(each, transactional_id=name) for name, each in results.items() if isinstance(each, Failure)
    ]
    return Result(tuple(name for name, each in results.items() if each is None), (*listed.failures, *failures))


def _description(row: TransactionState, node: BrokerNode) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=row.transactional_id,
        state=row.transaction_state,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        timeout_ms=row.transaction_timeout_ms,
        started_ms=row.transaction_start_time_ms,
        partitions={topic.topic: topic.partitions for topic in row.topics},
        coordinator=node,
    )
