"""The rights of producers and transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from koordinator.wire.messages.produce import ProduceResponse
from koordinator.wire.records import is_transactional

from ...core.acls.acl import CLUSTER_NAME, Operation, ResourceType
from ...core.data.produce import failure_without_acks
from ...core.data.topic import INTERNAL_TOPICS
from .guards import ERRORS, Admitted, Refused, needs_cluster

if TYPE_CHECKING:
    from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
    from koordinator.wire.messages.describe_transactions import DescribeTransactionsResponse
    from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
    from koordinator.wire.messages.list_transactions import ListTransactionsResponse
    from koordinator.wire.messages.produce import ProduceRequest

    from .guards import Client, Guard

TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

OF_BROKERS_SINCE = 4
"""The first version of AddPartitionsToTxn that brokers send."""


def transactional_produce(client: Client, request: ProduceRequest) -> Refused | Admitted:
    """Need Write of the transactional id for transactional records. Without an id they are refused in any case."""
    records = (row.records or b"" for topic in request.topic_data for row in topic.partition_data)
    name = request.transactional_id
    if name is None or not any(map(is_transactional, records)):
        return Admitted(request)
    if client.may(Operation.WRITE, TRANSACTIONAL_ID, name):
        return Admitted(request)
    return client.refuse(ERRORS[TRANSACTIONAL_ID])


def closing_without_acks(guard: Guard) -> Guard:
    """Return a guard of Produce that closes the connection in place of a refusal if no response is expected."""

    def closing(client: Client, request: ProduceRequest) -> Refused | Admitted:
        verdict = guard(client, request)
        if request.acks:
            return verdict
        if isinstance(verdict, Refused):
            return replace(verdict, closes=_failure(verdict.response))
        if verdict.complete is None:
            return verdict
        return Admitted(verdict.request, closes=_failure(verdict.complete(ProduceResponse())))

    return closing


def _failure(refusal: Any) -> str:  # noqa: ANN401 - a response to Produce
    return failure_without_acks(refusal) or ""


def init_producer_id(client: Client, request: InitProducerIdRequest) -> Refused | Admitted:
    """Need Write of the transactional id; without one IdempotentWrite of the cluster, or Write of any topic."""
    name = request.transactional_id
    if name is not None:
        is_allowed = client.may(Operation.WRITE, TRANSACTIONAL_ID, name)
        return Admitted(request) if is_allowed else client.refuse(ERRORS[TRANSACTIONAL_ID])
    if client.can_any(Operation.WRITE, ResourceType.TOPIC):
        return Admitted(request)
    if client.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        return Admitted(request)
    return client.refuse(ERRORS[ResourceType.CLUSTER])


def add_partitions(client: Client, request: AddPartitionsToTxnRequest) -> Refused | Admitted:
    """Need Write of the transactional id and of each topic: if one is refused or unknown, none is added.

    Brokers need ClusterAction instead.
    """
    if client.call.api_version >= OF_BROKERS_SINCE:
        return needs_cluster(Operation.CLUSTER_ACTION)(client, request)
    if not client.may(Operation.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return client.refuse(ERRORS[TRANSACTIONAL_ID])
    topics = request.v3_and_below_topics
    refused = {
        row.name
        for row in topics
        if row.name in INTERNAL_TOPICS or not client.may(Operation.WRITE, ResourceType.TOPIC, row.name)
    }
    if not refused:
        return Admitted(request)
    rows = tuple(_added(client, row, is_refused=row.name in refused) for row in topics)
    return Refused(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows))


def _added(client: Client, row: AddPartitionsToTxnTopic, *, is_refused: bool) -> AddPartitionsToTxnTopicResult:
    topic = client.cluster.topics.find(row.name)

    def error(partition: int) -> Error:
        if is_refused:
            return Error.TOPIC_AUTHORIZATION_FAILED
        exists = topic is not None and topic.log(partition) is not None
        return Error.OPERATION_NOT_ATTEMPTED if exists else Error.UNKNOWN_TOPIC_OR_PARTITION

    return AddPartitionsToTxnTopicResult(
        name=row.name,
        results_by_partition=tuple(
            AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=error(each))
            for each in row.partitions
        ),
    )


def seen_transactions(client: Client, response: ListTransactionsResponse) -> ListTransactionsResponse:
    """Leave out transactions that the client may not describe."""
    rows = (
        each
        for each in response.transaction_states
        if client.can(Operation.DESCRIBE, TRANSACTIONAL_ID, each.transactional_id)
    )
    return replace(response, transaction_states=tuple(rows))


def seen_topics(client: Client, response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
    """Leave out the topics of a transaction that the client may not describe."""
    rows = tuple(
        replace(
            state,
            topics=tuple(row for row in state.topics if client.can(Operation.DESCRIBE, ResourceType.TOPIC, row.topic)),
        )
        for state in response.transaction_states
    )
    return replace(response, transaction_states=rows)
