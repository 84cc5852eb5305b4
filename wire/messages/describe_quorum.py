"""DescribeQuorum (api key 55), versions 0-2, flexible (KIP-595).

v1 last_fetch_timestamp, last_caught_up_timestamp (KIP-836); v2 directories, nodes, messages (KIP-853)
"""

from uuid import UUID

from ..primitives import ZERO_UUID
from ..schema import array, entity, int16, int32, int64, message, string, uint16, uuid_


@entity
class PartitionData:
    """A partition of the metadata log."""

    partition_index: int = int32()


@entity
class TopicData:
    """The metadata log, by name."""

    topic_name: str = string()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """A request for the quorum of `__cluster_metadata`."""

    topics: tuple[TopicData, ...] = array(TopicData)


@entity
class ReplicaState:
    """The state of a controller's log; times in ms, -1 if unknown."""

    replica_id: int = int32()
    replica_directory_id: UUID = uuid_("2+", default=ZERO_UUID)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


@entity
class QuorumPartitionData:
    """The leader and the replicas of a partition, or an error."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: tuple[ReplicaState, ...] = array(ReplicaState)
    observers: tuple[ReplicaState, ...] = array(ReplicaState)


@entity
class QuorumTopicData:
    """The partitions of a topic."""

    topic_name: str = string()
    partitions: tuple[QuorumPartitionData, ...] = array(QuorumPartitionData)


@entity
class Listener:
    """An endpoint of a controller."""

    name: str = string()
    host: str = string()
    port: int = uint16()


@entity
class QuorumNode:
    """A controller."""

    node_id: int = int32()
    listeners: tuple[Listener, ...] = array(Listener)


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """The quorum."""

    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: tuple[QuorumTopicData, ...] = array(QuorumTopicData)
    nodes: tuple[QuorumNode, ...] = array(QuorumNode, "2+")
