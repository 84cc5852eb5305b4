"""Produce (api key 0), versions 0-13, flexible from 9.

v1 throttle_time_ms | v2 log_append_time_ms | v3 transactional_id, one record batch of magic 2 per partition (KIP-98) |
v4 KAFKA_STORAGE_ERROR | v5 log_start_offset | v7 zstd (KIP-110) | v8 record_errors, error_message (KIP-467) |
v9 flexible | v10 current_leader, node_endpoints (KIP-951) | v11 TRANSACTION_ABORTABLE, v12 implicit
AddPartitionsToTxn (KIP-890) | v13 topic_id instead of name (KIP-516)
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, nested, records, string, uuid_
from .fetch import LeaderIdAndEpoch, NodeEndpoint


@entity
class PartitionProduceData:
    """The record batches (v0-2: message set) for one partition, as they go into the log."""

    index: int = int32()
    records: bytes | None = records(nullable="0+")


@entity
class TopicProduceData:
    """A topic by name (v0-12) or id (v13+), with data for its partitions."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid_("13+", ignorable=True)
    partition_data: tuple[PartitionProduceData, ...] = array(PartitionProduceData)


@message(key=0, versions="0-13", flexible="9+")
class ProduceRequest:
    """Records to append. acks: 0 gets no response, 1 that of the leader, -1 that of all in-sync replicas."""

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: tuple[TopicProduceData, ...] = array(TopicProduceData)


@entity
class BatchIndexAndErrorMessage:
    """A record, counted from 0 in its batch, that invalidated the batch."""

    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


@entity
class PartitionProduceResponse:
    """The result of one partition: base_offset of the first record, or -1; log_append_time_ms unless it is -1."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "10+", tag=0)


@entity
class TopicProduceResponse:
    """A topic by name (v0-12) or id (v13+), with the results of its partitions."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid_("13+", ignorable=True)
    partition_responses: tuple[PartitionProduceResponse, ...] = array(PartitionProduceResponse)


@message(key=0, versions="0-13", flexible="9+")
class ProduceResponse:
    """A row for each partition; not sent for acks 0."""

    responses: tuple[TopicProduceResponse, ...] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "10+", tag=0)
