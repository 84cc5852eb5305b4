"""ShareAcknowledge (api key 79), versions 1-2, flexible (KIP-932).

v0 was the early access of 4.0, and 4.1 removed it | v2 is_renew_ack, acquisition_lock_timeout_ms (KIP-1222)
"""

from uuid import UUID

from ..schema import array, boolean, entity, int16, int32, message, nested, string, uuid_
from .fetch import NodeEndpoint
from .share_fetch import AcknowledgementBatch, LeaderIdAndEpoch


@entity
class AcknowledgePartition:
    """A partition with its acknowledgements."""

    partition_index: int = int32()
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = array(AcknowledgementBatch)


@entity
class AcknowledgeTopic:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[AcknowledgePartition, ...] = array(AcknowledgePartition)


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """Acknowledgements of acquired records in the share session; share_session_epoch -1 closes it, too."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean("2+")
    topics: tuple[AcknowledgeTopic, ...] = array(AcknowledgeTopic)


@entity
class PartitionData:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)


@entity
class ShareAcknowledgeTopicResponse:
    """A topic with the results of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """The results, and the time for which a renewed lock holds."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint)
