"""Requests with placeholders, in any version: fields that a version lacks are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from exploring.steps import GROUP, TOPICS, Id, TopicId
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.list_groups import ListGroupsRequest
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
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MemberRef = Id | str
"""A member id: one issued by a response, or a text."""

Offers = tuple[tuple[str, bytes], ...]
"""Protocols by preference, with their metadata."""

T = write_subscription(ConsumerProtocolSubscription(topics=("t",)))
T_AND_U = write_subscription(ConsumerProtocolSubscription(topics=("t", "u")))

UNKNOWN_TOPIC = "nosuch"
UNKNOWN_TOPIC_ID = UUID(int=7)

INSTANCE_SINCE = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7}
"""The first versions with a group_instance_id (KIP-345)."""

LEAVE_SEVERAL_SINCE = 3
FETCH_GROUPS_SINCE = 8
FETCH_ALL_SINCE = 2
TOPIC_IDS_SINCE = 10
STABLE_SINCE = 7
OPERATIONS_SINCE = 3
STATES_SINCE = 4
TYPES_SINCE = 5
REASON_SINCE = {"JoinGroup": 8, "LeaveGroup": 5}
MEMBER_SINCE = 1
LEADER_EPOCH_SINCE = 6


def join(
    version: int,
    who: MemberRef = "",
    instance_id: str | None = None,
    *,
    protocols: Offers,
    session_ms: int,
    rebalance_ms: int,
    protocol_type: str = "consumer",
    reason: str | None = None,
    group: str = GROUP,
) -> JoinGroupRequest:
    """Return a JoinGroup."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
        member_id=cast("Any", who),
        group_instance_id=instance_id if version >= INSTANCE_SINCE["JoinGroup"] else None,
        protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols),
        reason=reason if version >= REASON_SINCE["JoinGroup"] else None,
    )


def sync(
    version: int,
    generation: int,
    who: MemberRef,
    instance_id: str | None = None,
    *,
    assignments: Mapping[MemberRef, bytes],
    protocol: tuple[str | None, str | None],
    group: str = GROUP,
) -> SyncGroupRequest:
    """Return a SyncGroup; `protocol` is (type, name)."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=cast("Any", who),
        group_instance_id=instance_id if version >= INSTANCE_SINCE["SyncGroup"] else None,
        protocol_type=protocol[0] if version >= 5 else None,
        protocol_name=protocol[1] if version >= 5 else None,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=cast("Any", each), assignment=data)
            for each, data in assignments.items()
        ),
    )


def heartbeat(
    version: int, generation: int, who: MemberRef, instance_id: str | None = None, *, group: str = GROUP
) -> HeartbeatRequest:
    """Return a Heartbeat."""
    return HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=cast("Any", who),
        group_instance_id=instance_id if version >= INSTANCE_SINCE["Heartbeat"] else None,
    )


def leave(
    version: int, members: Sequence[tuple[MemberRef, str | None]], reason: str | None = None, *, group: str = GROUP
) -> LeaveGroupRequest:
    """Return a LeaveGroup; before v3 it names only the first member."""
    if version < LEAVE_SEVERAL_SINCE:
        return LeaveGroupRequest(group_id=group, member_id=cast("Any", members[0][0]))
    given = reason if version >= REASON_SINCE["LeaveGroup"] else None
    rows = tuple(
        MemberIdentity(member_id=cast("Any", who), group_instance_id=instance_id, reason=given)
        for who, instance_id in members
    )
    return LeaveGroupRequest(group_id=group, members=rows)


def commit(
    version: int,
    generation: int,
    who: MemberRef,
    instance_id: str | None,
    offsets: Mapping[tuple[str, int], tuple[int, str | None]],
) -> OffsetCommitRequest:
    """Return an OffsetCommit of (topic, partition): (offset, metadata)."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), (offset, metadata) in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=partition if version >= LEADER_EPOCH_SINCE else -1,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=generation if version >= MEMBER_SINCE else -1,
        member_id=cast("Any", who) if version >= MEMBER_SINCE else "",
        group_instance_id=instance_id if version >= INSTANCE_SINCE["OffsetCommit"] else None,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name if version < TOPIC_IDS_SINCE else "",
                topic_id=_topic_id(name) if version >= TOPIC_IDS_SINCE else ZERO_UUID,
                partitions=tuple(rows),
            )
            for name, rows in topics.items()
        ),
    )


def fetch(version: int, wanted: Mapping[str, tuple[int, ...]] | None, *, stable: bool = False) -> OffsetFetchRequest:
    """Return an OffsetFetch; without topics it fetches all offsets, from v2 on."""
    if wanted is None and version < FETCH_ALL_SINCE:
        wanted = {name: tuple(range(partitions)) for name, partitions in TOPICS.items()}
    stable = stable and version >= STABLE_SINCE
    if version < FETCH_GROUPS_SINCE:
        old = (
            None
            if wanted is None
            else tuple(OffsetFetchRequestTopic(name=name, partition_indexes=rows) for name, rows in wanted.items())
        )
        return OffsetFetchRequest(group_id=GROUP, topics=old, require_stable=stable)
    new = (
        None
        if wanted is None
        else tuple(
            OffsetFetchRequestTopics(
                name=name if version < TOPIC_IDS_SINCE else "",
                topic_id=_topic_id(name) if version >= TOPIC_IDS_SINCE else ZERO_UUID,
                partition_indexes=rows,
            )
            for name, rows in wanted.items()
        )
    )
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=new),), require_stable=stable)


def forget(partitions: Iterable[tuple[str, int]]) -> OffsetDeleteRequest:
    """Return an OffsetDelete."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=partition))
    return OffsetDeleteRequest(
        group_id=GROUP,
        topics=tuple(OffsetDeleteRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()),
    )


def describe(version: int, *, operations: bool = False) -> DescribeGroupsRequest:
    """Return a DescribeGroups."""
    return DescribeGroupsRequest(
        groups=(GROUP,), include_authorized_operations=operations and version >= OPERATIONS_SINCE
    )


def listing(version: int, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> ListGroupsRequest:
    """Return a ListGroups."""
    return ListGroupsRequest(
        states_filter=states if version >= STATES_SINCE else (), types_filter=types if version >= TYPES_SINCE else ()
    )


def delete() -> DeleteGroupsRequest:
    """Return a DeleteGroups."""
    return DeleteGroupsRequest(groups_names=(GROUP,))


def _topic_id(name: str) -> Any:
    return UNKNOWN_TOPIC_ID if name == UNKNOWN_TOPIC else TopicId(name)
