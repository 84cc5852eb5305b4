"""OffsetCommit (api key 8), versions 0-10, flexible from 8.

v0 stored in ZooKeeper | v1 generation and member; commit_timestamp of each partition (v1 only) |
v2-v4 retention_time_ms | v3 throttle_time_ms | v6 committed_leader_epoch (KIP-320) | v7 group_instance_id (KIP-345) |
v8 flexible | v9 member epochs, STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND (KIP-848) |
v10 topic_id instead of name
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_


@entity
class OffsetCommitRequestPartition:
    """The offset of the next record to read, with the client's metadata."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@entity
class OffsetCommitRequestTopic:
    """A topic by name (v0-9) or id (v10+), with the partitions to commit."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid_("10+", ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest:
    """Offsets to store. Generation -1 without a member id: a commit from outside the group."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@entity
class OffsetCommitResponsePartition:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@entity
class OffsetCommitResponseTopic:
    """A topic by name (v0-9) or id (v10+), with the results of its partitions."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid_("10+", ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    """A row for each partition; there is no top-level error."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)
