"""The assignor `uniform`: sizes differ by one at most, and members keep their partitions.

One algorithm serves groups whose members all have the same subscription, another the others. Kafka: `UniformAssignor`,
`UniformHomogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ...java.hash_tables import BUCKETS_MIN, HashTable
from .assignment import TargetDraft

if TYPE_CHECKING:
    from .assignment import GroupSpec, Target


def assign_equal_subscriptions(group: GroupSpec, *, extra_stays: bool) -> dict[str, Target]:
    """Return the targets of members with equal subscriptions, in members' order.

    `extra_stays`: if some members get one partition more than others, it is those that have it already. Up to 3.9 it is
    the first members (KAFKA-18046).
    """
    first = next(iter(group.members.values()))
    topics = HashTable.copy_of(first.topics, first.names)
    free = deque(
        (topic, partition)
        for topic in topics
        for partition in range(group.partitions[topic])
        if (topic, partition) not in group.taken
    )
    count = sum(group.partitions[topic] for topic in topics)
    quota, extras = divmod(count, len(group.members))
    drafts = {member_id: TargetDraft(member.previous) for member_id, member in group.members.items()}
    unfilled: list[tuple[TargetDraft, int]] = []
    for number, draft in enumerate(drafts.values()):
        has_extra = extras > 0
        missing = quota + has_extra
        for topic, partitions in draft.topics():
            if topic not in topics:
                draft.drop(topic)
                continue
            for partition in partitions[missing:]:
                draft.remove(topic, partition)
                free.append((topic, partition))
            missing = max(missing - len(partitions), 0)
        if extra_stays and has_extra and missing and len(group.members) - number > extras:
            has_extra = False
            missing -= 1
        extras -= has_extra
        if missing:
            unfilled.append((draft, missing))
    for draft, missing in unfilled:
        # too few are free after the target of a member was replaced by that of the static member it took over
        for _ in range(min(missing, len(free))):
            draft.add(*free.popleft(), BUCKETS_MIN)
    return {member_id: draft.result() for member_id, draft in drafts.items()}
