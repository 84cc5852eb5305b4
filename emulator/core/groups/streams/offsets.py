"""The checks of commits to a streams group.

Kafka: `StreamsGroup.validateOffsetCommit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..modern.offsets import MEMBER_EPOCHS_SINCE, names_no_member
from .tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

    from ...effects import Call
    from ..group_store import GroupStore
    from .group import StreamsGroup
    from .member import StreamsMember


def commit_error(store: GroupStore, group: StreamsGroup, call: Call, request: OffsetCommitRequest) -> Error:
    """Return why a commit is refused, or NONE."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return Error.NONE
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if call.api_version < MEMBER_EPOCHS_SINCE:
        return Error.UNSUPPORTED_VERSION
    by_id = store.cluster.topics.find_id
    partitions = (
        (topic.name or ("" if (known := by_id(topic.topic_id)) is None else known.name), row.partition_index)
        for topic in request.topics
        for row in topic.partitions
    )
    return _refuse_epoch(store, group, member, epoch, partitions)


def transactional_commit_error(store: GroupStore, group: StreamsGroup, request: TxnOffsetCommitRequest) -> Error:
    """Return why a commit in a transaction is refused, or NONE; a producer need not name a member (KIP-447)."""
    epoch = request.generation_id_or_member_epoch
    if names_no_member(request) or (epoch < 0 and not group.members):
        return Error.NONE
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    partitions = ((topic.name, row.partition_index) for topic in request.topics for row in topic.partitions)
    return _refuse_epoch(store, group, member, epoch, partitions)


def _refuse_epoch(
    store: GroupStore, group: StreamsGroup, member: StreamsMember, epoch: int, partitions: Iterable[tuple[str, int]]
) -> Error:
    """Return why an epoch may not commit partitions, or NONE.

    The current epoch may commit any partition. An older one may commit those of active tasks that the member got in it
    or earlier; one other partition fails the whole request. Partitions that do not exist are refused on their own.
    """
    if epoch == member.epoch:
        return Error.NONE
    if epoch < member.epoch:
        existing = ((name, at) for name, at in partitions if 0 <= at < store.cluster.topics.partition_count(name))
        tasks = (Task(group.source_subtopology(name) or "", at) for name, at in existing)
        if all(task in member.active_since and member.active_since[task] <= epoch for task in tasks):
            return Error.NONE
    return member.stale_epoch_error
