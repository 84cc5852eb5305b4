"""A complete request of every API of transactions, each from a producer of its own. See `full_requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clients.strict_connection import error_codes

from builders import requests
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from koordinator.wire.messages.describe_transactions import DescribeTransactionsRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.list_transactions import ListTransactionsRequest

if TYPE_CHECKING:
    from builders.full_requests import Asked
    from koordinator.wire.messages.txn_offset_commit import (
        TxnOffsetCommitRequest,
    )
    from koordinator.wire.messages.write_txn_markers import (
        WriteTxnMarkersRequest,
    )

TRANSACTION = 1
"""FindCoordinatorRequest's key_type of a transactional id."""


class Named(NamedTuple):
    """A transactional producer, with the names of the requests' fields."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def initialized(there: Asked) -> Named:
    """Initialize a producer with an unused transactional id."""
    name = there.name()
    coordinator = FindCoordinatorRequest(key=name, key_type=TRANSACTION, coordinator_keys=(name,))
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    there.until(coordinator, lambda answer: not any(error_codes(answer)))
    answer = there.until(request, lambda answer: not any(error_codes(answer)))
    return Named(name, answer.producer_id, answer.producer_epoch)


def begun(there: Asked) -> Named:
    """Initialize a producer, and add the offsets of a group to its transaction."""
    producer = initialized(there)
    there.succeed(AddOffsetsToTxnRequest(**producer._asdict(), group_id=producer.transactional_id))
    return producer


def add_partitions_to_txn(there: Asked, _: int) -> AddPartitionsToTxnRequest:
    producer, topics = initialized(there), (AddPartitionsToTxnTopic(name=there.t, partitions=(0, 1)),)
    return AddPartitionsToTxnRequest(
        transactions=(AddPartitionsToTxnTransaction(**producer._asdict(), verify_only=False, topics=topics),),
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=topics,
    )


def add_offsets_to_txn(there: Asked, _: int) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(**initialized(there)._asdict(), group_id=there.name())


def end_txn(there: Asked, _: int) -> EndTxnRequest:
    return EndTxnRequest(**begun(there)._asdict(), committed=True)


def write_txn_markers(there: Asked, _: int) -> WriteTxnMarkersRequest:
    _, producer_id, epoch = initialized(there)
    return requests.write_txn_markers(producer_id, epoch, [(there.t, 1)], commit=True, coordinator_epoch=1)


def txn_offset_commit(there: Asked, _: int) -> TxnOffsetCommitRequest:
    group_id, member_id = there.stable()
    producer = initialized(there)
    there.succeed(AddOffsetsToTxnRequest(**producer._asdict(), group_id=group_id))
    offsets, ids = {(there.t, 0): 1}, {there.t: there.id}
    return requests.txn_offset_commit(
        producer, group_id, offsets, 1, member_id, "i", metadata="m", leader_epoch=0, ids=ids
    )


def describe_producers(there: Asked, _: int) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=(TopicRequest(name=there.t, partition_indexes=(0, 1)),))


def describe_transactions(there: Asked, _: int) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=(begun(there).transactional_id,))


def list_transactions(there: Asked, _: int) -> ListTransactionsRequest:
    producer = begun(there)
    return ListTransactionsRequest(
        state_filters=("Ongoing",),
        producer_id_filters=(producer.producer_id,),
        duration_filter=0,
        transactional_id_pattern=producer.transactional_id,
    )
