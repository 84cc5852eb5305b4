"""ShareFetch (api key 78), versions 1-2, flexible (KIP-932).

v0 was the early access of 4.0, and 4.1 removed it | v2 share_acquire_mode (KIP-1206), is_renew_ack (KIP-1222)
"""

from uuid import UUID

from ..schema import array, boolean, entity, int8, int16, int32, int64, message, nested, records, string, uuid_
from .fetch import NodeEndpoint


@entity
class AcknowledgementBatch:
    """Acknowledgements of the records between two offsets, both included: one type for all of them, or one for each.

    The types are 0 gap, 1 accept, 2 release, 3 reject, and in v2 4 renew.
    """

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: tuple[int, ...] = array(int8)


@entity
class FetchPartition:
    """A partition to add to the share session, or with acknowledgements."""

    partition_index: int = int32()
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = array(AcknowledgementBatch)


@entity
class FetchTopic:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[FetchPartition, ...] = array(FetchPartition)


@entity
class ForgottenTopic:
    """Partitions to remove from the share session."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """A request for records of the share session's partitions; the broker waits up to max_wait_ms for min_bytes.

    share_session_epoch 0 opens a session, -1 closes it. share_acquire_mode is 0 for whole batches, 1 for at most
    max_records. With is_renew_ack nothing is fetched.
    """

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = boolean("2+")
    topics: tuple[FetchTopic, ...] = array(FetchTopic)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic)


@entity
class LeaderIdAndEpoch:
    """The current leader, in the response of another broker."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@entity
class AcquiredRecords:
    """Records that are locked for the member now, with the number of their deliveries, this one included."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@entity
class PartitionData:
    """Records of one partition, and the error of the acknowledgements that came for it."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)
    records: bytes = records()
    acquired_records: tuple[AcquiredRecords, ...] = array(AcquiredRecords)


@entity
class ShareFetchableTopicResponse:
    """A topic with data of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """The acquired records, which stay locked for acquisition_lock_timeout_ms."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: tuple[ShareFetchableTopicResponse, ...] = array(ShareFetchableTopicResponse)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint)
