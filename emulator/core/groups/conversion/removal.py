"""Members leave a consumer group, or are removed by a timer; where only classic ones stay, the group becomes classic.

Kafka: `GroupMetadataManager.consumerGroupFenceMembers`, `consumerGroupLeave`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...timers import ClassicJoinTimeout, ClassicSyncTimeout, PatternResolution, RevocationTimeout, SessionExpiry
from ..causes import Cause, Reason
from ..consumer import membership
from ..consumer.patterns import resolve
from ..modern.membership import RETRY_MS
from .downgrade import downgrade, may_downgrade

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...timers import TimerKey
    from ..consumer.group import ConsumerGroup
    from ..group_store import GroupStore
    from ..modern.changes import Answer


def remove(
    store: GroupStore, group: ConsumerGroup, member_ids: Collection[str], why: Reason, answer: Answer = None
) -> None:
    """Remove members; the response waits for the write."""
    if may_downgrade(store, group, member_ids):
        downgrade(store, group, member_ids, why, answer)
    else:
        membership.remove(store, group, member_ids, why, answer)


def fire(store: GroupStore, group: ConsumerGroup, key: TimerKey) -> None:
    """Act on a timer: resolve patterns, or remove a member that is silent or late."""
    if isinstance(key, PatternResolution):
        return resolve(store, group)
    member_id = getattr(key, "member_id", "")
    member = group.members.get(member_id)
    cause, text = EXPIRIES[type(key)]
    is_over = isinstance(key, RevocationTimeout) and (member is None or not member.is_revoking or member.has_left())
    if member is not None and not is_over:
        # counts if the removal cannot be written
        group.timers.set(key, group.now + RETRY_MS)
        remove(store, group, [member_id], Reason(cause, text.format(member_id), member_id))
    return None


EXPIRIES: Mapping[type, tuple[Cause, str]] = {
    SessionExpiry: (Cause.SESSION_EXPIRED, "Member {} fenced from the group because its session expired."),
    RevocationTimeout: (
        Cause.REVOCATION_TIMEOUT,
        "Member {} fenced from the group because it failed to transition to the next epoch in time.",
    ),
    ClassicJoinTimeout: (
        Cause.JOIN_TIMEOUT,
        "Member {} fenced from the group because it did not rejoin within its rebalance timeout.",
    ),
    ClassicSyncTimeout: (
        Cause.SYNC_TIMEOUT,
        "Member {} fenced from the group because it did not sync within its rebalance timeout.",
    ),
}
"""Why a timer removes its member."""
