"""AddPartitionsToTxn and AddOffsetsToTxn: partitions that join a transaction, or must be in it (KIP-98, KIP-890).

Kafka: `KafkaApis.handleAddPartitionsToTxnRequest`, `TransactionCoordinator.handleAddPartitionsToTransaction` and
`handleVerifyPartitionsInTransaction`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.values import mutable

from ..data.topic import OFFSETS_TOPIC
from .ending import TV2, fenced_error
from .transitions import TransactionCause, TransactionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
    from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

    from ..effects import Call
    from .transaction import TopicPartition, TransactionalId
    from .transaction_store import TransactionStore

BROKERS_ONLY_SINCE = 4
"""The first version of AddPartitionsToTxn with several transactions, for brokers (KIP-890)."""

Results = dict["TopicPartition", Error]

Rows = list[tuple[str, tuple[int, ...]]]
"""Topics with partitions, as they stand in a response."""


@mutable
class PendingAdds:
    """The results of one request, a row for each of its transactions, and the number of writes it waits for.

    `written` has the results that wait for a write, by transactional id: those of rows that repeat an id wait for the
    write of its first row. `verified` has the rows that verify such an id, and their results, known after the write.
    """

    call: Call
    results: list[tuple[str, Results, Rows]] = field(default_factory=list)
    waiting: int = 0
    written: dict[str, list[Results]] = field(default_factory=dict)
    verified: list[tuple[AddPartitionsToTxnTransaction, Results]] = field(default_factory=list)


def add_partitions(store: TransactionStore, now: int, call: Call, request: AddPartitionsToTxnRequest) -> None:
    """Add partitions to a transaction (v0-3), or add and verify those of several (v4+).

    A batch without any transaction is never answered, as in Kafka.
    """
    adds = PendingAdds(call)
    if call.api_version < BROKERS_ONLY_SINCE:
        transactions: Sequence[AddPartitionsToTxnTransaction] = (
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            ),
        )
    else:
        transactions = request.transactions
    # of a transactional id that is given twice the last partitions count, but an added one is answered with the rows of
    # the first (`AddPartitionsToTxnRequest.partitionsByTransaction`, `errorResponseForTransaction`)
    last = {wanted.transactional_id: wanted.topics for wanted in transactions}
    first = {wanted.transactional_id: wanted.topics for wanted in reversed(transactions)}
    for wanted in transactions:
        partitions = _partitions(last[wanted.transactional_id])
        unknown = {at for at in partitions if not 0 <= at[1] < _partition_count(store, at[0])}
        if unknown:
            # the coordinator is not asked: an unknown topic hides its errors
            results = {
                at: Error.UNKNOWN_TOPIC_OR_PARTITION if at in unknown else Error.OPERATION_NOT_ATTEMPTED
                for at in partitions
            }
            adds.results.append((wanted.transactional_id, results, _merged(results)))
        elif wanted.verify_only:
            results = _verify(store, wanted, partitions)
            adds.results.append((wanted.transactional_id, results, _merged(results)))
            if wanted.transactional_id in adds.written:
                adds.verified.append((wanted, results))
        else:
            rows = [(topic.name, topic.partitions) for topic in first[wanted.transactional_id]]
            _add(store, now, adds, wanted, partitions, rows)
    if transactions and not adds.waiting:
        store.reply(call, response(adds))


def _partition_count(store: TransactionStore, topic: str) -> int:
    # groups are coordinated, and commit in transactions, before their topic exists
    cluster = store.cluster
    return len(cluster.planned_topic().logs) if topic == OFFSETS_TOPIC else cluster.topics.partition_count(topic)


def add_offsets(store: TransactionStore, now: int, call: Call, request: AddOffsetsToTxnRequest) -> None:
    """Add the partition of `__consumer_offsets` that stores a group; the group need not exist."""
    adds = PendingAdds(call)
    wanted = AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
    )
    partition = store.cluster.partition_of(request.group_id)
    _add(store, now, adds, wanted, [(OFFSETS_TOPIC, partition)], [(OFFSETS_TOPIC, (partition,))])
    if not adds.waiting:
        store.reply(call, response(adds))


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, partition) for topic in topics for partition in topic.partitions]


def _merged(partitions: Iterable[TopicPartition]) -> Rows:
    """Return a row for each topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [(topic, tuple(each)) for topic, each in topics.items()]


def _add(
    store: TransactionStore,
    now: int,
    adds: PendingAdds,
    wanted: AddPartitionsToTxnTransaction,
    partitions: list[TopicPartition],
    rows: Rows,
) -> None:
    """Add partitions, all or none; those that are in the transaction already cost nothing.

    `rows` are those of the response, which all get the same error.
    """
    transaction = _find(store, wanted)
    error = transaction if isinstance(transaction, Error) else Error.NONE
    answered = [(topic, partition) for topic, each in rows for partition in each]
    results = dict.fromkeys(answered, error)
    adds.results.append(
        (wanted.transactional_id, results, rows if store.dialect.repeats_added_partitions else _merged(results))
    )
    if isinstance(transaction, Error):
        return
    written = adds.written.get(wanted.transactional_id)
    error = _refuse(store, transaction, wanted, is_busy=transaction.is_busy and written is None)
    data, is_version_2 = transaction.data, _is_of_version_2(store, adds.call)
    is_new = data.status is not TransactionStatus.ONGOING or not data.partitions.issuperset(partitions)
    if error is Error.NONE and is_new and is_version_2:
        error = store.refuse_version_2(transaction)

    def answer(error: Error) -> AddPartitionsToTxnResponse | AddOffsetsToTxnResponse | None:
        """Return the response with the last of the writes."""
        adds.waiting -= 1
        if error is not Error.NONE:
            for each in adds.written[wanted.transactional_id]:
                each.update(dict.fromkeys(each, error))
        for verified, each in adds.verified:
            each.update(_verify(store, verified, list(each)))
        return None if adds.waiting else response(adds)

    if error is not Error.NONE:
        results.update(dict.fromkeys(answered, error))
    elif written is not None:
        written.append(results)
    elif is_new:
        adds.waiting += 1
        adds.written[wanted.transactional_id] = [results]
        store.change(
            now,
            transaction,
            TransactionCause.PARTITIONS_ADDED,
            (adds.call, answer),
            partitions=data.partitions.union(partitions),
            started_ms=data.started_ms if data.status is TransactionStatus.ONGOING else now,
            client_version=TV2 if is_version_2 else 0,
        )


def _is_of_version_2(store: TransactionStore, call: Call) -> bool:
    """Return whether a broker adds partitions for a client of transaction version 2 (KIP-890)."""
    is_batch = call.api_key == ApiKey.ADD_PARTITIONS_TO_TXN and call.api_version >= BROKERS_ONLY_SINCE
    return is_batch and TV2 in store.dialect.transaction_versions


def _verify(
    store: TransactionStore, wanted: AddPartitionsToTxnTransaction, partitions: list[TopicPartition]
) -> Results:
    transaction = _find(store, wanted)
    if isinstance(transaction, Error):
        return dict.fromkeys(partitions, transaction)
    data, error = transaction.data, Error.NONE
    if wanted.producer_id != data.producer_id:
        error = Error.INVALID_PRODUCER_ID_MAPPING
    elif wanted.producer_epoch != data.epoch:
        error = Error.PRODUCER_FENCED
    elif data.status.is_prepared:
        error = Error.CONCURRENT_TRANSACTIONS
    if error is not Error.NONE:
        return dict.fromkeys(partitions, error)
    return {at: Error.NONE if at in data.partitions else Error.TRANSACTION_ABORTABLE for at in partitions}


def _find(store: TransactionStore, wanted: AddPartitionsToTxnTransaction) -> TransactionalId | Error:
    error = store.status(wanted.transactional_id)
    if error is not Error.NONE:
        return error
    return store.transactions.get(wanted.transactional_id) or Error.INVALID_PRODUCER_ID_MAPPING


def _refuse(
    store: TransactionStore, transaction: TransactionalId, wanted: AddPartitionsToTxnTransaction, *, is_busy: bool
) -> Error:
    data = transaction.data
    if is_busy and store.dialect.checks_pending_change_first:
        return Error.CONCURRENT_TRANSACTIONS
    if wanted.producer_id != data.producer_id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if wanted.producer_epoch != data.epoch:
        return Error.PRODUCER_FENCED
    return Error.CONCURRENT_TRANSACTIONS if is_busy else Error.NONE


def response(adds: PendingAdds) -> AddPartitionsToTxnResponse | AddOffsetsToTxnResponse:
    """Return the response once every result is known."""
    call = adds.call
    if call.api_key == ApiKey.ADD_OFFSETS_TO_TXN:
        ((error,),) = (results.values() for _, results, _ in adds.results)  # one transaction, one partition
        return AddOffsetsToTxnResponse(error_code=fenced_error(call, error))
    rows = [(transactional_id, _topic_rows(call, results, each)) for transactional_id, results, each in adds.results]
    if call.api_version < BROKERS_ONLY_SINCE:
        ((_, topics),) = rows
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=topics)
            for transactional_id, topics in rows
        )
    )


def _topic_rows(call: Call, results: Results, rows: Rows) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=fenced_error(call, results[topic, partition])
                )
                for partition in partitions
            ),
        )
        for topic, partitions in rows
    )
