"""The assignor `range`: consecutive partitions of each topic, in the order of the members' ids.

Kafka: `RangeAssignor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...java.hash_tables import LOAD_FACTOR, HashTable

if TYPE_CHECKING:
    from uuid import UUID

    from .assignment import GroupSpec, MemberSpec, Target


def assign_ranges(group: GroupSpec) -> dict[str, Target]:
    """Return the targets, in members' order. Static members come first; nothing depends on previous targets."""

    def rank(member_id: str) -> tuple[bool, bytes]:
        instance_id = group.members[member_id].instance_id
        return instance_id is None, (member_id if instance_id is None else instance_id).encode("utf-16-be")

    in_order = sorted(group.members, key=rank)
    subscribers: dict[UUID, list[str]] = {}
    for member_id in in_order:
        for topic in group.members[member_id].topics:
            subscribers.setdefault(topic, []).append(member_id)
    ranges: dict[str, dict[UUID, tuple[int, ...]]] = {member_id: {} for member_id in group.members}
    for topic, member_ids in subscribers.items():
        share, extras = divmod(group.partitions[topic], len(member_ids))
        start = 0
        for number, member_id in enumerate(member_ids):
            end = start + share + (number < extras)
            if end > start:
                ranges[member_id][topic] = tuple(range(start, end))
            start = end
    return {
        # if all members have the same topics, the first one's table decides
        member_id: _listed(group.members[in_order[0] if group.is_equal else member_id], assigned)
        for member_id, assigned in ranges.items()
    }


def _listed(member: MemberSpec, assigned: Target) -> Target:
    """Return a target in the order of a table that is made for this member's topics, and filled in their order."""
    topics = (topic for topic in member.topics if topic in assigned)
    return {topic: assigned[topic] for topic in HashTable(topics, int(member.names / LOAD_FACTOR) + 1)}
