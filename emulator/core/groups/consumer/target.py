"""The computation of a target assignment. Kafka: `TargetAssignmentBuilder`, `ConsumerGroup.subscriptionType`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .assignment import GroupSpec, MemberSpec
from .hash_tables import HashTable
from .range_assignor import assign_ranges
from .topics import topic_ids
from .uniform import assign_equal_subscriptions
from .uniform_mixed import assign_mixed_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..group_store import GroupStore
    from .assignment import Target
    from .group import ConsumerGroup
    from .member import ConsumerMember

RANGE = "range"
"""The assignor beside `uniform`."""


def members_in_order(
    group: ConsumerGroup, updated: ConsumerMember, replaced_id: str | None
) -> dict[str, ConsumerMember]:
    """Return the members as they are with the heartbeat in progress, in the order in which assignors see them."""
    changes: dict[str, ConsumerMember | None] = {updated.id: updated}
    if replaced_id is not None and replaced_id != updated.id:
        changes[replaced_id] = None
    members: dict[str, ConsumerMember] = {member.id: member for member in group.ordered_members()}
    table: HashTable[str] = HashTable(members)
    for member_id in HashTable(changes):
        change = changes[member_id]
        if change is None:
            table.discard(member_id)
        else:
            table.add(member_id)
            members[member_id] = change
    return {member_id: members[member_id] for member_id in table}


def compute_target(
    store: GroupStore,
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    targets: Mapping[str, Target],
    listed_names: Mapping[str, tuple[str, ...]],
) -> dict[str, Target]:
    """Return the target of each member, from the previous `targets`.

    `listed_names` has the names of the heartbeat's member in the order in which it sent them; stored names are sorted.
    """
    specs = {
        member_id: MemberSpec(
            topics=topic_ids(store.cluster, listed_names.get(member_id, member.names)),
            names=len(member.names),
            previous=targets.get(member_id, {}),
            instance_id=member.instance_id,
        )
        for member_id, member in members.items()
    }
    taken = {
        (topic, partition)
        for target in group.targets.values()
        for topic, partitions in target.items()
        for partition in partitions
    }
    counts = {topic.topic_id: len(topic.logs) for topic in store.cluster.topics.values()}
    spec = GroupSpec(specs, counts, taken, is_equal=len({member.names for member in members.values()}) == 1)
    if assignor_of(store, members.values()) == RANGE:
        return assign_ranges(spec)
    if spec.is_equal:
        return assign_equal_subscriptions(spec, extra_stays=store.dialect.extra_partition_stays)
    return assign_mixed_subscriptions(spec)


def assignor_of(store: GroupStore, members: Iterable[ConsumerMember]) -> str:
    """Return the assignor that most members ask for, the first in table order of several; else that of the settings."""
    votes = Counter(member.assignor for member in members if member.assignor is not None)
    return (
        max(HashTable(votes), key=votes.__getitem__) if votes else store.settings.group_consumer_assignors.split(",")[0]
    )
