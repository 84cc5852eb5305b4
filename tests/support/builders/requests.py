"""Requests of members and producers from short arguments: the one place that knows the rows of Kafka's messages.

A builder is named after its API. It takes names before numbers: the group or the transactional id, then the member or
the producer, then its rows; and a version first of all where that decides the shape. Offsets are {(topic, partition):
offset}. A request without rows needs no builder. `within` leaves out the fields that a version lacks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

R = TypeVar("R")

Partition = tuple[str, int]
"""A topic's name, and the number of a partition."""

Protocols = tuple[tuple[str, bytes], ...]
"""Names in the order of preference, each with its metadata."""

LEAVE_SEVERAL_SINCE = 3
"""The first version of LeaveGroup that names several members (KIP-345)."""

FETCH_GROUPS_SINCE = 8
"""The first version of OffsetFetch for several groups (KIP-709)."""


def subscription(*topics: str, version: int = 3, **fields: Any) -> bytes:
    """Return the subscription metadata of a member."""
    return write_subscription(ConsumerProtocolSubscription(topics=topics, **fields), version)


def protocols(*names: str, topics: Iterable[str] = ("t",)) -> Protocols:
    """Return assignors in order of preference, each with distinct metadata."""
    return tuple((name, subscription(*topics, user_data=name.encode())) for name in names)


RANGE: Protocols = (("range", subscription("t")),)

CHANGED: Protocols = (("range", subscription("t", "u")),)
"""The same protocol with other metadata."""


def within(message: Any, version: int) -> Any:
    """Return the message without fields that the version lacks."""
    changed: dict[str, Any] = {}
    for name, spec in fields_of(type(message)).items():
        value = getattr(message, name)
        if version not in spec.versions:
            changed[name] = spec.default
        elif isinstance(spec.type, type) and value:
            changed[name] = tuple(within(each, version) for each in value) if spec.is_array else within(value, version)
    return replace(message, **changed)


def by_topic(rows: Iterable[tuple[str, R]]) -> dict[str, tuple[R, ...]]:
    """Group rows by topic, in the order of the topics' first rows."""
    topics: dict[str, list[R]] = {}
    for topic, row in rows:
        topics.setdefault(topic, []).append(row)
    return {topic: tuple(grouped) for topic, grouped in topics.items()}


# -- members -------------------------------------------------------------------------------------------------


def join_group(
    group_id: str,
    member_id: str = "",
    instance_id: str | None = None,
    *,
    session_ms: int = 10_000,
    rebalance_ms: int = 30_000,
    protocols: Iterable[tuple[str, bytes]] = RANGE,
    protocol_type: str = "consumer",
    reason: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols),
        reason=reason,
    )


def sync_group(
    group_id: str,
    generation: int,
    member_id: str,
    assignments: Mapping[str, bytes] | None = None,
    instance_id: str | None = None,
    *,
    protocol: tuple[str | None, str | None] = (None, None),
) -> SyncGroupRequest:
    """`protocol` is (type, name), from version 5 on."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol[0],
        protocol_name=protocol[1],
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=each, assignment=data) for each, data in (assignments or {}).items()
        ),
    )


def leave_group(
    version: int, group_id: str, *members: str | tuple[str, str | None], reason: str | None = None
) -> LeaveGroupRequest:
    """`members` are member ids, or (member id, instance id); a version without several names the first."""
    rows = [each if isinstance(each, tuple) else (each, None) for each in members]
    if version < LEAVE_SEVERAL_SINCE:
        return LeaveGroupRequest(group_id=group_id, member_id=rows[0][0])
    identities = (
        MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
        for member_id, instance_id in rows
    )
    return LeaveGroupRequest(group_id=group_id, members=tuple(identities))


def consumer_group_heartbeat(
    group_id: str,
    member_id: str,
    epoch: int,
    instance_id: str | None = None,
    *,
    topics: Iterable[str] | None = None,
    regex: str | None = None,
    owned: Mapping[UUID, Sequence[int]] | None = None,
    rebalance_ms: int = -1,
    rack_id: str | None = None,
    assignor: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """`owned` are partitions by topic id."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=None if topics is None else tuple(topics),
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=None
        if owned is None
        else tuple(TopicPartitions(topic_id=topic, partitions=tuple(rows)) for topic, rows in owned.items()),
    )


# -- offsets -------------------------------------------------------------------------------------------------


def offset_commit(
    group_id: str,
    offsets: Mapping[Partition, int],
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    *,
    metadata: str | Mapping[Partition, str | None] | None = "",
    leader_epoch: int | Mapping[Partition, int] = -1,
    retention_ms: int = -1,
    ids: Mapping[str, UUID] | None = None,
) -> OffsetCommitRequest:
    """`metadata` and `leader_epoch` are those of all partitions, or of each; `ids` are topic ids by name."""
    rows = by_topic(
        (
            at[0],
            OffsetCommitRequestPartition(
                partition_index=at[1],
                committed_offset=offset,
                committed_leader_epoch=_of(leader_epoch, at),
                committed_metadata=_of(metadata, at),
            ),
        )
        for at, offset in offsets.items()
    )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        retention_time_ms=retention_ms,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, topic_id=_id(name, ids), partitions=partitions)
            for name, partitions in rows.items()
        ),
    )


def txn_offset_commit(
    producer: tuple[str, int, int],
    group_id: str,
    offsets: Mapping[Partition, int],
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    *,
    metadata: str | Mapping[Partition, str | None] | None = "",
    leader_epoch: int | Mapping[Partition, int] = -1,
    ids: Mapping[str, UUID] | None = None,
) -> TxnOffsetCommitRequest:
    """`producer` is (transactional id, producer id, epoch); the rest is as in `offset_commit`."""
    rows = by_topic(
        (
            at[0],
            TxnOffsetCommitRequestPartition(
                partition_index=at[1],
                committed_offset=offset,
                committed_leader_epoch=_of(leader_epoch, at),
                committed_metadata=_of(metadata, at),
            ),
        )
        for at, offset in offsets.items()
    )
    return TxnOffsetCommitRequest(
        transactional_id=producer[0],
        group_id=group_id,
        producer_id=producer[1],
        producer_epoch=producer[2],
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=name, topic_id=_id(name, ids), partitions=partitions)
            for name, partitions in rows.items()
        ),
    )


def offset_fetch(
    version: int,
    groups: str | Iterable[str],
    partitions: Iterable[Partition] | None = None,
    *,
    stable: bool = False,
    member: tuple[str | None, int] = (None, -1),
    ids: Mapping[str, UUID] | None = None,
) -> OffsetFetchRequest:
    """Of several groups only from version 8 on; without partitions all offsets. `member` is (member id, epoch)."""
    names = (groups,) if isinstance(groups, str) else tuple(groups)
    wanted = None if partitions is None else by_topic(partitions)
    if version < FETCH_GROUPS_SINCE:
        old = (
            None
            if wanted is None
            else tuple(OffsetFetchRequestTopic(name=name, partition_indexes=at) for name, at in wanted.items())
        )
        return OffsetFetchRequest(group_id=names[0], topics=old, require_stable=stable)
    new = (
        None
        if wanted is None
        else tuple(
            OffsetFetchRequestTopics(name=name, topic_id=_id(name, ids), partition_indexes=at)
            for name, at in wanted.items()
        )
    )
    rows = (
        OffsetFetchRequestGroup(group_id=name, member_id=member[0], member_epoch=member[1], topics=new)
        for name in names
    )
    return OffsetFetchRequest(groups=tuple(rows), require_stable=stable)


def offset_delete(group_id: str, partitions: Iterable[Partition]) -> OffsetDeleteRequest:
    rows = by_topic((topic, OffsetDeleteRequestPartition(partition_index=at)) for topic, at in partitions)
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(OffsetDeleteRequestTopic(name=name, partitions=each) for name, each in rows.items()),
    )


# -- producers, records --------------------------------------------------------------------------------------


def add_partitions_to_txn(producer: tuple[str, int, int], partitions: Iterable[Partition]) -> AddPartitionsToTxnRequest:
    """A client's, up to version 3. `producer` is (transactional id, producer id, epoch)."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer[0],
        v3_and_below_producer_id=producer[1],
        v3_and_below_producer_epoch=producer[2],
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=at) for name, at in by_topic(partitions).items()
        ),
    )


def write_txn_markers(
    producer_id: int,
    epoch: int,
    partitions: Iterable[Partition],
    *,
    commit: bool,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=at) for name, at in by_topic(partitions).items()
        ),
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    return WriteTxnMarkersRequest(markers=(marker,))


def produce(
    topic: str,
    batches: Mapping[int, bytes | None],
    transactional_id: str | None = None,
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
    topic_id: UUID = ZERO_UUID,
) -> ProduceRequest:
    """`batches` are encoded record batches by partition."""
    rows = tuple(PartitionProduceData(index=at, records=batch) for at, batch in batches.items())
    data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=rows)
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=(data,))


def fetch(
    topic: str,
    offsets: Mapping[int, int],
    *,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    topic_id: UUID = ZERO_UUID,
) -> FetchRequest:
    """`offsets` are the first ones to read, by partition; `max_bytes` is the limit of a partition, too."""
    rows = tuple(
        FetchPartition(partition=at, fetch_offset=offset, partition_max_bytes=max_bytes)
        for at, offset in offsets.items()
    )
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=rows),),
    )


def list_offsets(topic: str, timestamps: Mapping[int, int], *, isolation_level: int = 0) -> ListOffsetsRequest:
    """`timestamps` are by partition; -1 asks for the end, -2 for the beginning."""
    rows = tuple(ListOffsetsPartition(partition_index=at, timestamp=time) for at, time in timestamps.items())
    return ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation_level, topics=(ListOffsetsTopic(name=topic, partitions=rows),)
    )


def _of(value: Any, at: Partition) -> Any:
    return value[at] if hasattr(value, "keys") else value


def _id(name: str, ids: Mapping[str, UUID] | None) -> UUID:
    return ZERO_UUID if ids is None else ids[name]
