"""The checks of OffsetFetch for members of consumer and streams groups, and what their commits have in common.

Kafka: `ConsumerGroup.validateOffsetFetch`, `StreamsGroup.validateOffsetFetch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequestGroup
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

    from .group import ModernGroup

MEMBER_EPOCHS_SINCE = 9
"""The first version of OffsetCommit with member epochs; members of the newer protocols have to use it."""

UNKNOWN_GENERATION_ID = -1
"""The generation of a request that names none (`JoinGroupRequest.UNKNOWN_GENERATION_ID`)."""


def names_no_member(request: TxnOffsetCommitRequest) -> bool:
    """Return whether a commit in a transaction leaves its member out, as a producer may (KIP-447)."""
    generation = request.generation_id_or_member_epoch
    return generation == UNKNOWN_GENERATION_ID and not request.member_id and request.group_instance_id is None


def fetch_error(group: ModernGroup[Any, Any], query: OffsetFetchRequestGroup) -> Error:
    """Return why a fetch is refused, or NONE; only the current epoch counts, unless there is neither id nor epoch.

    An epoch without an id makes Kafka's coordinator fail.
    """
    if query.member_id is None:
        return Error.NONE if query.member_epoch < 0 else Error.UNKNOWN_SERVER_ERROR
    member = group.members.get(query.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    error: Error = member.stale_epoch_error
    return Error.NONE if query.member_epoch == member.epoch else error
