"""The checks of commits to a consumer group.

Kafka: `ConsumerGroup.validateOffsetCommit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..modern.offsets import MEMBER_EPOCHS_SINCE, names_no_member

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

    from ...data.topic import TopicState
    from ...effects import Call
    from ..group_store import GroupStore
    from .group import ConsumerGroup
    from .member import ConsumerMember


def commit_error(store: GroupStore, group: ConsumerGroup, call: Call, request: OffsetCommitRequest) -> Error:
    """Return why a commit is refused, or NONE."""
    member, cluster = group.members.get(request.member_id), store.cluster
    if member is not None and member.classic is None and call.api_version < MEMBER_EPOCHS_SINCE:
        return Error.UNSUPPORTED_VERSION
    partitions = (
        (cluster.topics.find_id(topic.topic_id) or cluster.topics.find(topic.name), row.partition_index)
        for topic in request.topics
        for row in topic.partitions
    )
    return _refuse_epoch(group, member, request.generation_id_or_member_epoch, partitions)


def transactional_commit_error(store: GroupStore, group: ConsumerGroup, request: TxnOffsetCommitRequest) -> Error:
    """Return why a commit in a transaction is refused, or NONE; a producer need not name a member (KIP-447)."""
    if names_no_member(request):
        return Error.NONE
    epoch = request.generation_id_or_member_epoch
    partitions = (
        (store.cluster.topics.find(topic.name), row.partition_index)
        for topic in request.topics
        for row in topic.partitions
    )
    return _refuse_epoch(group, group.members.get(request.member_id), epoch, partitions)


def _refuse_epoch(
    group: ConsumerGroup,
    member: ConsumerMember | None,
    epoch: int,
    partitions: Iterable[tuple[TopicState | None, int]],
) -> Error:
    """Return why an epoch may not commit partitions, or NONE.

    The current epoch may commit any partition. An older one may commit what the member got in it or earlier (KIP-1251);
    one partition that it did not get fails the whole request. Before 4.3 members get everything in their epoch.
    """
    if not group.members and epoch < 0:
        return Error.NONE
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    is_accepted = epoch == member.epoch or (
        epoch < member.epoch and all(_got_at(member, *at) <= epoch for at in partitions)
    )
    return Error.NONE if is_accepted else member.stale_epoch_error


def _got_at(member: ConsumerMember, topic: TopicState | None, partition: int) -> float:
    """Return the epoch at which a member got a partition; infinity if it does not have it.

    Partitions that do not exist count as held from the beginning: they are refused on their own.
    """
    if topic is None or not 0 <= partition < len(topic.logs):
        return float("-inf")
    for partitions in (member.assigned, member.pending):
        at = partitions.get(topic.topic_id, {}).get(partition)
        if at is not None:
            return at
    return float("inf")
