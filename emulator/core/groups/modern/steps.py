"""The times of a group's targets, and of its members' steps towards them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...timers import RevocationTimeout

if TYPE_CHECKING:
    from ..group_store import GroupStore
    from .group import ModernGroup
    from .member import ModernMember


def is_too_early(store: GroupStore, group: ModernGroup[Any, Any]) -> bool:
    """Return whether the latest target is younger than the assignment interval (KIP-1263)."""
    if not store.dialect.spaces_assignments:
        return False
    interval_ms = group.setting(store.cluster, "assignment.interval.ms")
    # after a restart the group's time may be earlier than that of its record: an advanced clock is not stored
    return bool(group.target_time and interval_ms) and 0 <= group.now - group.target_time < interval_ms


def time_of_target(store: GroupStore, group: ModernGroup[Any, Any]) -> int:
    """Return the time in ms that the record of a target has if it is computed now; 0 in releases without such times."""
    return group.now if store.dialect.spaces_assignments else 0


def set_revocation_timeout(group: ModernGroup[Any, Any], member: ModernMember) -> None:
    """Start the timeout of a member whose step leaves it something to revoke, or end it."""
    if member.is_revoking:
        group.timers.set(RevocationTimeout(member.id), group.now + member.rebalance_timeout_ms)
    else:
        group.timers.cancel(RevocationTimeout(member.id))
