"""The assignor `simple`: each partition has about as many members as the others, each member as many partitions.

Kafka: `SimpleAssignor`, `SimpleHomogeneousAssignmentBuilder`, `SimpleHeterogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING
from uuid import UUID

from ...java.hash_tables import HashTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .member import Partitions

NAME = "simple"
"""The name of the assignor, the only one that share groups have."""

Place = tuple[UUID, int]
"""A partition: topic id and number."""


def assign(
    subscriptions: Mapping[str, Sequence[UUID]],
    partitions: Mapping[UUID, Iterable[int]],
    previous: Mapping[str, Partitions],
) -> dict[str, Partitions]:
    """Return the target of each member.

    `subscriptions` has the existing topics of each member, in the order of Kafka's table of members; `partitions` the
    ones of each topic that may be assigned. With different subscriptions each topic is assigned on its own, and a
    member keeps the row of each topic that it had: an empty one of a topic that others get, and its partitions of a
    topic that nobody subscribes to any more.
    """
    places = {topic: [(topic, partition) for partition in sorted(each)] for topic, each in partitions.items()}
    held = {
        member_id: [(topic, partition) for topic, numbers in target.items() for partition in numbers]
        for member_id, target in previous.items()
    }
    if len({frozenset(topics) for topics in subscriptions.values()}) == 1:
        topics = HashTable(next(iter(subscriptions.values())))
        every = [place for topic in topics for place in places.get(topic, ())]
        return {member_id: _by_topic(got) for member_id, got in _share_out(list(subscriptions), every, held).items()}
    targets = {member_id: dict(previous.get(member_id, {})) for member_id in subscriptions}
    for topic in HashTable(topic for each in subscriptions.values() for topic in each):
        members = [member_id for member_id, each in subscriptions.items() if topic in each]
        got = _share_out(members, places.get(topic, []), held)
        for member_id, target in targets.items():
            if topic in target or got.get(member_id):
                target[topic] = tuple(sorted(partition for _, partition in got.get(member_id, ())))
    return targets


def _share_out(
    members: Sequence[str], assignable: Sequence[Place], held: Mapping[str, Sequence[Place]]
) -> dict[str, list[Place]]:
    """Give every partition to the desired number of members, from what they had before."""
    if not assignable or not members:
        return {member_id: [] for member_id in members}
    sharing = ceil(len(members) / len(assignable))
    wanted = _wanted(sharing * len(assignable) / len(members), len(members))
    known = set(assignable)
    kept = [_within(wanted[at], [p for p in held.get(each, ()) if p in known]) for at, each in enumerate(members)]
    sharers: dict[Place, list[int]] = {place: [] for place in assignable}
    for at, places in enumerate(kept):
        for place in places:
            sharers[place].append(at)
    for place, holders in sharers.items():
        surplus = max(0, len(holders) - sharing)
        for at in holders[:surplus]:
            kept[at].remove(place)
        del holders[:surplus]
    _fill(kept, sharers, wanted, sharing)
    return dict(zip(members, kept, strict=True))


def _wanted(each: float, members: int) -> list[int]:
    """Return the number of partitions that each member wants, which differ by one at most."""
    return [ceil(each * (at + 1)) - ceil(each * at) for at in range(members)]


def _within(wanted: int, places: Sequence[Place]) -> list[Place]:
    """Return what a member keeps of its partitions; the first ones in the order of Kafka's table go."""
    ordered = list(HashTable(places))
    return ordered[max(0, len(ordered) - wanted) :]


def _fill(kept: list[list[Place]], sharers: Mapping[Place, list[int]], wanted: Sequence[int], sharing: int) -> None:
    """Give partitions with too few members to members with too few partitions, in turn."""
    unfilled = [at for at, places in enumerate(kept) if len(places) < wanted[at]]
    turn = 0
    for place in HashTable.copy_of(sharers):
        holders, before, tried = sharers[place], set(sharers[place]), 0
        while unfilled and len(holders) < sharing and tried < len(unfilled):
            turn %= len(unfilled)
            at = unfilled[turn]
            if at in before:
                turn, tried = turn + 1, tried + 1
                continue
            kept[at].append(place)
            holders.append(at)
            before.add(at)
            if len(kept[at]) == wanted[at]:
                # the next one moves into its place
                del unfilled[turn]
            else:
                turn += 1
            tried = 0


def _by_topic(places: Iterable[Place]) -> Partitions:
    found: dict[UUID, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return {topic: tuple(sorted(numbers)) for topic, numbers in found.items()}
