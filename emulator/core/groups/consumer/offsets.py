"""The checks of offset requests to a consumer group.

Kafka: `ConsumerGroup.validateOffsetCommit`, `validateOffsetFetch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequestGroup

    from ...effects import Call
    from ..group_store import GroupStore
    from .group import ConsumerGroup
    from .member import ConsumerMember

MEMBER_EPOCHS_SINCE = 9
"""The first version of OffsetCommit with member epochs; members of the consumer protocol have to use it."""


def refuse_commit(store: GroupStore, group: ConsumerGroup, call: Call, request: OffsetCommitRequest) -> Error:
    """Return why a commit is refused, or NONE.

    The current epoch may commit any partition. An older one may commit the partitions that the member got in it or
    earlier (KIP-1251); one partition that it did not get fails the whole request.
    """
    epoch = request.generation_id_or_member_epoch
    if not group.members and epoch < 0:
        return Error.NONE
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if member.classic is None and call.api_version < MEMBER_EPOCHS_SINCE:
        return Error.UNSUPPORTED_VERSION
    is_accepted = epoch == member.epoch or (
        store.dialect.partitions_have_epochs
        and epoch < member.epoch
        and all(_got_at(member, *at) <= epoch for at in _partitions(store, request))
    )
    if is_accepted:
        return Error.NONE
    return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION


def refuse_fetch(group: ConsumerGroup, query: OffsetFetchRequestGroup) -> Error:
    """Return why a fetch is refused, or NONE; only the current epoch counts, unless there is neither id nor epoch."""
    if query.member_id is None and query.member_epoch < 0:
        return Error.NONE
    member = group.members.get(query.member_id or "")
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if query.member_epoch == member.epoch:
        return Error.NONE
    return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION


def _partitions(store: GroupStore, request: OffsetCommitRequest) -> Iterator[tuple[UUID, int]]:
    """Yield the existing partitions of a commit; the others are refused on their own."""
    for row in request.topics:
        topic = store.cluster.topic_by_id(row.topic_id) or store.cluster.topic(row.name)
        if topic is not None:
            for partition in row.partitions:
                if 0 <= partition.partition_index < len(topic.logs):
                    yield topic.topic_id, partition.partition_index


def _got_at(member: ConsumerMember, topic: UUID, partition: int) -> float:
    """Return the epoch at which a member got a partition; infinity if it does not have it."""
    for partitions in (member.assigned, member.pending):
        at = partitions.get(topic, {}).get(partition)
        if at is not None:
            return at
    return float("inf")
