"""Transactional batches in Produce, which the transaction coordinator confirms before the append (KIP-890).

Kafka: `ReplicaManager.handleProduceAppend`, `AddPartitionsToTxnManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.records import is_transactional, read_header
from koordinator.wire.values import mutable

from ..refusal import Refusal
from .produce import TOPIC_ID_SINCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from koordinator.wire.messages.produce import ProduceRequest
    from koordinator.wire.records import BatchHeader

    from ..cluster import ClusterState
    from ..dialect import Dialect
    from ..effects import Call

    TopicPartition = tuple[str, int]

ABORTABLE_SINCE = 11
"""The first version of Produce whose clients know TRANSACTION_ABORTABLE."""

ADDS_SINCE = 12
"""The first version that adds the partitions to the transaction instead of verifying them."""

VERIFICATION_VERSION = 5
"""The version of AddPartitionsToTxn that brokers send to each other."""

_SEVERAL_PRODUCERS = Refusal(
    Error.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
)

RETRY_MS, RETRIES_MAX = 20, 5
"""A batch of a transaction whose predecessor is being completed is tried again for 100 ms
(`add.partitions.to.txn.retry.backoff.ms` and `.max.ms`)."""


@mutable
class ProduceToVerify:
    """A Produce that waits for the transaction coordinator; `refused` are the partitions that do not."""

    call: Call
    request: ProduceRequest
    batches: Mapping[TopicPartition, BatchHeader]
    refused: Mapping[TopicPartition, Refusal]
    tries: int = 1


def transactional_batches(
    cluster: ClusterState, call: Call, request: ProduceRequest
) -> dict[TopicPartition, BatchHeader]:
    """Return the headers of the transactional batches with a producer id, by existing partition."""
    batches: dict[TopicPartition, BatchHeader] = {}
    for at, records in _of_known_partitions(cluster, call, request):
        if is_transactional(records or b""):
            header = read_header(records or b"")
            if header.producer_id >= 0:
                batches[at] = header
    return batches


def lacks_records(cluster: ClusterState, call: Call, request: ProduceRequest) -> bool:
    """Return whether an existing partition has null instead of records."""
    return any(records is None for _, records in _of_known_partitions(cluster, call, request))


def _of_known_partitions(
    cluster: ClusterState, call: Call, request: ProduceRequest
) -> Iterator[tuple[TopicPartition, bytes | None]]:
    """Yield the records for each partition that exists."""
    for data in request.topic_data:
        topic = (
            cluster.topics.find_id(data.topic_id)
            if call.api_version >= TOPIC_ID_SINCE
            else cluster.topics.find(data.name)
        )
        for partition in data.partition_data:
            if topic is not None and topic.log(partition.index) is not None:
                yield (topic.name, partition.index), partition.records


def refuse_request(
    dialect: Dialect, request: ProduceRequest, batches: Mapping[TopicPartition, BatchHeader]
) -> Refusal | None:
    """Return the refusal of every partition, if any: without a transactional id, or for several producers to verify.

    A batch needs the transactional id for its attribute alone, whatever its producer or partition is
    (`RequestUtils.hasTransactionalRecords`).
    """
    sent = (data.records or b"" for topic in request.topic_data for data in topic.partition_data)
    if request.transactional_id is None and any(map(is_transactional, sent)):
        return Refusal(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "")
    producers = {(header.producer_id, header.producer_epoch) for header in batches.values()}
    several = dialect.verifies_produced_batches and len(producers) > 1
    return _SEVERAL_PRODUCERS if several else None


def to_verify(
    cluster: ClusterState, dialect: Dialect, version: int, batches: Mapping[TopicPartition, BatchHeader]
) -> tuple[dict[TopicPartition, BatchHeader], dict[TopicPartition, Refusal]]:
    """Return the batches that would start a transaction in their partition, and note their sequences there.

    The second table has the refusals of batches with an earlier epoch than the producer's latest in their partition:
    since 4.1 nothing else of them is looked at (`UnifiedLog.maybeStartTransactionVerification`).
    """
    starting: dict[TopicPartition, BatchHeader] = {}
    refused: dict[TopicPartition, Refusal] = {}
    is_enabled = cluster.settings.transaction_partition_verification_enable or version >= ADDS_SINCE
    if not (dialect.verifies_produced_batches and is_enabled):
        return starting, refused
    for at, header in batches.items():
        log = cluster.topics.log(*at)
        assert log is not None, f"{at} exists"
        producers, producer_id, epoch = log.producers, header.producer_id, header.producer_epoch
        compares_epoch = dialect.verifies_epoch_of_open_transactions
        if compares_epoch and producers.is_fenced(producer_id, epoch):
            refused[at] = Refusal(Error.INVALID_PRODUCER_EPOCH, "")
        elif not producers.has_open(producer_id, epoch if compares_epoch else None):
            producers.begin_verification(header, starts_at_0=version >= ADDS_SINCE)
            starting[at] = header
    return starting, refused


def verification(
    call: Call, request: ProduceRequest, batches: Mapping[TopicPartition, BatchHeader]
) -> AddPartitionsToTxnRequest:
    """Return the request to the transaction coordinator: to verify these partitions, from v12 on to add them."""
    header = next(iter(batches.values()))
    topics: dict[str, list[int]] = {}
    for topic, partition in batches:
        topics.setdefault(topic, []).append(partition)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id or "",
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        verify_only=call.api_version < ADDS_SINCE,
        topics=tuple(AddPartitionsToTxnTopic(name=name, partitions=tuple(ids)) for name, ids in topics.items()),
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


def verified(waiting: ProduceToVerify, response: AddPartitionsToTxnResponse | None) -> dict[TopicPartition, Refusal]:
    """Return the refusals by partition as Produce answers them; `response` is None for an unreachable coordinator."""
    errors = dict.fromkeys(waiting.batches, Error.NOT_COORDINATOR)
    for transaction in response.results_by_transaction if response is not None else ():
        for topic in transaction.topic_results:
            for row in topic.results_by_partition:
                errors[topic.name, row.partition_index] = Error(row.partition_error_code)
    version = waiting.call.api_version
    failed = {at: _produce_refusal(version, error) for at, error in errors.items() if error is not Error.NONE}
    return {**waiting.refused, **failed}


def _produce_refusal(version: int, error: Error) -> Refusal:
    match error:
        case Error.TRANSACTION_ABORTABLE | Error.INVALID_TXN_STATE if version < ABORTABLE_SINCE:
            return Refusal(Error.INVALID_TXN_STATE, "Partition was not added to the transaction")
        case Error.PRODUCER_FENCED | Error.INVALID_PRODUCER_EPOCH:
            return Refusal(Error.INVALID_PRODUCER_EPOCH, "")
        case Error.CONCURRENT_TRANSACTIONS if version >= ADDS_SINCE:
            return Refusal(error, "")
        case (
            Error.CONCURRENT_TRANSACTIONS
            | Error.COORDINATOR_LOAD_IN_PROGRESS
            | Error.COORDINATOR_NOT_AVAILABLE
            | Error.NOT_COORDINATOR
        ):
            problem = "Unable to verify the partition has been added to the transaction. Underlying error: "
            return Refusal(Error.NOT_ENOUGH_REPLICAS, problem + error.name)
        case _:
            return Refusal(error, "")
