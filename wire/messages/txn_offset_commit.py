"""TxnOffsetCommit (api key 28), versions 0-6, flexible from 3.

v2 committed_leader_epoch | v3 flexible; generation, member and instance id (KIP-447) | v4 TRANSACTION_ABORTABLE |
v5 adds the group to the transaction (KIP-890) |
v6 topic_id instead of name, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH and UNKNOWN_TOPIC_ID (KIP-1319)
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_


@entity
class TxnOffsetCommitRequestPartition:
    """The offset of the next record to read, with the client's metadata."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@entity
class TxnOffsetCommitRequestTopic:
    """A topic by name (v0-5) or id (v6+), with the partitions to commit."""

    name: str = string("0-5", ignorable=True)
    topic_id: UUID = uuid_("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = array(TxnOffsetCommitRequestPartition)


@message(key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest:
    """Offsets that count once the transaction commits. Generation -1 without a member id: not validated."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id_or_member_epoch: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = array(TxnOffsetCommitRequestTopic)


@entity
class TxnOffsetCommitResponsePartition:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@entity
class TxnOffsetCommitResponseTopic:
    """A topic by name (v0-5) or id (v6+), with the results of its partitions."""

    name: str = string("0-5", ignorable=True)
    topic_id: UUID = uuid_("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = array(TxnOffsetCommitResponsePartition)


@message(key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse:
    """A row for each partition; there is no top-level error."""

    throttle_time_ms: int = int32()
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = array(TxnOffsetCommitResponseTopic)
