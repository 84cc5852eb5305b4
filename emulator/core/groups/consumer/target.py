"""The computation of a target assignment. Kafka: `TargetAssignmentBuilder`, `ConsumerGroup.subscriptionType`."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from ...java.hash_tables import HashTable, TimelineTable
from ..modern.topics import topic_ids
from . import uniform_3_9
from .assignment import GroupSpec, MemberSpec
from .range_assignor import assign_ranges
from .uniform import assign_equal_subscriptions
from .uniform_mixed import assign_mixed_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from ....config.settings import Settings
    from ..group_store import GroupStore
    from .assignment import Target
    from .group import ConsumerGroup
    from .member import ConsumerMember

RANGE = "range"
"""The assignor beside `uniform`."""

VOTES_CAPACITY = 4
"""The capacity of a copy of the votes, of which there are two at most."""


def members_in_order(
    group: ConsumerGroup, updated: ConsumerMember, replaced_id: str | None, *, leaves_out_replaced: bool
) -> dict[str, ConsumerMember]:
    """Return the members as they are with the heartbeat in progress, in the order in which assignors see them.

    That is the order of a hash table, which may depend on the replaced member unless that is left out.
    """
    if leaves_out_replaced:
        kept = (member for member in group.ordered_members() if member.id != replaced_id)
        as_updated = {member.id: member for member in kept} | {updated.id: updated}
        return {member_id: as_updated[member_id] for member_id in HashTable(as_updated)}
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
    assignor: str,
    listed_names: Mapping[str, tuple[str, ...]],
) -> dict[str, Target]:
    """Return the target of each member, from the previous `targets`.

    `listed_names` has the names of the heartbeat's member in the order in which it sent them; stored names are sorted.
    """

    @cache
    def subscribed(names: tuple[str, ...], regex: str) -> tuple[UUID, ...]:
        # most members have equal subscriptions
        return topic_ids(store.cluster, names, group.matches(regex))

    specs = {
        member_id: MemberSpec(
            topics=subscribed(listed_names.get(member_id, member.names), member.regex),
            names=len(group.topics_of(member)),
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
    spec = GroupSpec(specs, counts, taken, is_equal=_are_equal(members.values()))
    if assignor == RANGE:
        return assign_ranges(spec)
    if spec.is_equal:
        return assign_equal_subscriptions(spec, extra_stays=store.dialect.extra_partition_stays)
    if store.dialect.mixed_subscriptions_move_partitions:
        return uniform_3_9.assign_mixed_subscriptions(spec)
    return assign_mixed_subscriptions(spec)


def _are_equal(members: Iterable[ConsumerMember]) -> bool:
    """Return whether all members have the same names, or the same pattern and no names."""
    subscriptions = {(member.names, member.regex) for member in members}
    return len(subscriptions) == 1 and not all(next(iter(subscriptions)))


def preferred_assignor(settings: Settings, group: ConsumerGroup) -> str:
    """Return the assignor that most members ask for, the first in table order of several; else that of the settings."""
    return _first_with_most_votes(settings, _votes(group), TimelineTable(_votes(group)))


def next_assignor(
    store: GroupStore, group: ConsumerGroup, updated: ConsumerMember, replaced: ConsumerMember | None
) -> str:
    """Return the assignor of the next target, with the vote of the heartbeat's member.

    Kafka takes the member's earlier vote out of a copy of the table and puts the new one in: the only vote for an
    assignor comes first then (`ConsumerGroup.computePreferredServerAssignor`).
    """
    votes = _votes(group)
    table = HashTable(TimelineTable(votes), VOTES_CAPACITY)
    before = replaced or group.members.get(updated.id)
    if before is not None and before.assignor is not None:
        votes[before.assignor] -= 1
        if not votes[before.assignor]:
            table.discard(before.assignor)
    if updated.assignor is not None:
        votes[updated.assignor] += 1
        table.compute_if_absent(updated.assignor)
    return _first_with_most_votes(store.settings, votes, table)


def _votes(group: ConsumerGroup) -> Counter[str]:
    return Counter(member.assignor for member in group.members.values() if member.assignor is not None)


def _first_with_most_votes(settings: Settings, votes: Counter[str], order: Iterable[str]) -> str:
    return max(order, key=votes.__getitem__, default=settings.group_consumer_assignors.split(",")[0])
