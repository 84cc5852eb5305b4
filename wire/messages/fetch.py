"""Fetch (api key 1), versions 0-18, flexible from 12.

v1 throttle_time_ms | v3 max_bytes (KIP-74) | v4 isolation_level, aborted_transactions, magic 2 (KIP-98) |
v5 log_start_offset | v7 sessions (KIP-227) | v9 current_leader_epoch (KIP-320) | v10 zstd (KIP-110) |
v11 rack_id, preferred_read_replica (KIP-392) | v12 flexible; last_fetched_epoch, diverging_epoch (KIP-595) |
v13 topic_id instead of topic (KIP-516) | v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405) |
v15 replica_state instead of replica_id (KIP-903) | v16 node_endpoints (KIP-951) |
v17 replica_directory_id (KIP-853) | v18 high_watermark of followers (KIP-1166)
"""

from uuid import UUID

from ..schema import array, entity, int8, int16, int32, int64, message, nested, records, string, uuid_


@entity
class ReplicaState:
    """The replica that fetches; a consumer has replica_id -1."""

    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


@entity
class FetchPartition:
    """A partition with its offset and size limit; a consumer keeps the defaults of the follower fields."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid_("17+", tag=0, ignorable=True)
    high_watermark: int = int64("18+", tag=1, default=0x7FFFFFFFFFFFFFFF, ignorable=True)


@entity
class FetchTopic:
    """A topic by name (v0-12) or id (v13+), with the partitions to read."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid_("13+", ignorable=True)
    partitions: tuple[FetchPartition, ...] = array(FetchPartition)


@entity
class ForgottenTopic:
    """Partitions to remove from the fetch session."""

    topic: str = string("7-12", ignorable=True)
    topic_id: UUID = uuid_("13+", ignorable=True)
    partitions: tuple[int, ...] = array(int32)


@message(key=1, versions="0-18", flexible="12+")
class FetchRequest:
    """A request for records; the broker waits up to max_wait_ms for min_bytes. Session epoch -1: no fetch session."""

    cluster_id: str | None = string("12+", nullable="12+", tag=0, default=None, ignorable=True)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = nested(ReplicaState, "15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...] = array(FetchTopic)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)


@entity
class EpochEndOffset:
    """The divergence of a follower's log: the last common epoch and its end offset."""

    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


@entity
class LeaderIdAndEpoch:
    """The current leader, in the response of another broker; -1 is unknown."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@entity
class SnapshotId:
    """A snapshot to fetch instead; only of the metadata log."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@entity
class AbortedTransaction:
    """A producer's aborted transaction, from first_offset on."""

    producer_id: int = int64()
    first_offset: int = int64()


@entity
class PartitionData:
    """Records of one partition with the ends of its log; high_watermark is -1 with an error."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = nested(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = nested(SnapshotId, "12+", tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = array(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: bytes | None = records(nullable="0+")


@entity
class FetchableTopicResponse:
    """A topic by name (v0-12) or id (v13+), with data of its partitions."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid_("13+", ignorable=True)
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@entity
class NodeEndpoint:
    """The address of a broker that a current_leader names."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(key=1, versions="0-18", flexible="12+")
class FetchResponse:
    """The records; in a session only partitions with changes."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: tuple[FetchableTopicResponse, ...] = array(FetchableTopicResponse)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "16+", tag=0)
