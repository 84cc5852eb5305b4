"""The assignor `uniform` of 3.9 for different subscriptions: keep, fill, and move single partitions until balanced.

It fails where it would move two partitions of a topic in opposite directions, because of a reversed check in
`PartitionMovements.movePartition`. Kafka 3.9: `UniformHeterogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...java.hash_tables import BUCKETS_MIN, HashTable
from ...refusal import Refusal, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from .assignment import GroupSpec, Target

    TopicPartition = tuple[UUID, int]


def assign_mixed_subscriptions(group: GroupSpec) -> dict[str, Target]:
    """Return the targets of members with any subscriptions, in members' order.

    Raises RefusedError with UNKNOWN_SERVER_ERROR where Kafka 3.9 fails.
    """
    if not any(member.topics for member in group.members.values()):
        return {member_id: {} for member_id in group.members}
    return _Assignment(group).targets()


class _Assignment:
    """An assignment in the making."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._owners: dict[TopicPartition, str] = {}
        self._moves: set[tuple[UUID, str, str]] = set()
        self._subscribers: dict[UUID, list[str]] = {}
        for member_id, member in group.members.items():
            for topic in member.topics:
                self._subscribers.setdefault(topic, []).append(member_id)
        topics = HashTable(topic for member in group.members.values() for topic in member.topics)
        self._partitions = [(topic, at) for topic in topics for at in range(group.partitions[topic])]
        self._limits = {
            member_id: sum(group.partitions[topic] for topic in member.topics)
            for member_id, member in group.members.items()
        }
        self._loads = dict.fromkeys(group.members, 0)
        self._targets: dict[str, HashTable[UUID]] = {member_id: HashTable() for member_id in group.members}
        self._listed: dict[tuple[str, UUID], HashTable[int]] = {}
        self._candidates = {member_id for member_id, limit in self._limits.items() if limit}

    def targets(self) -> dict[str, Target]:
        for member_id, member in self._group.members.items():
            for topic, listed in _tables(member.previous):
                for partition in listed if topic in member.topics else ():
                    self._give((topic, partition), member_id)
        for each in self._in_order(HashTable.copy_of(HashTable(self._partitions)), self._owners):
            able = [member_id for member_id in self._subscribers[each[0]] if self._has_room(member_id)]
            self._give(each, min(able, key=self._rank))
        self._balance()
        return {
            member_id: {topic: tuple(self._listed[member_id, topic]) for topic in topics}
            for member_id, topics in self._targets.items()
        }

    def _in_order(self, table: Iterable[TopicPartition], taken: Iterable[TopicPartition] = ()) -> list[TopicPartition]:
        """Return partitions as they are dealt with: those of topics with the most partitions per subscriber first."""

        def urgency(each: TopicPartition) -> tuple[float, int, int]:
            subscribers = len(self._subscribers[each[0]])
            return -(self._group.partitions[each[0]] / subscribers), subscribers, each[1]

        gone = set(taken)
        return sorted((each for each in table if each not in gone), key=urgency)

    def _rank(self, member_id: str) -> tuple[int, bytes]:
        return self._loads[member_id], member_id.encode("utf-16-be")

    def _has_room(self, member_id: str) -> bool:
        return self._loads[member_id] < self._limits[member_id]

    def _balance(self) -> None:
        movable = {topic for topic, subscribers in self._subscribers.items() if len(subscribers) > 1}
        table = HashTable.copy_of(HashTable(self._partitions))
        partitions = self._in_order(each for each in table if each[0] in movable)
        gone: set[TopicPartition] | None = None
        while gone is None or gone:
            gone, moves = set(), False
            for each in partitions:
                if moves and self._is_balanced():
                    return
                owner = self._owners[each]
                moves = any(self._loads[owner] > self._loads[other] + 1 for other in self._subscribers[each[0]])
                if moves:
                    gone.add(each)
                    self._move(each)
            # a partition moves once
            partitions = [each for each in partitions if each not in gone]

    def _move(self, each: TopicPartition) -> None:
        """Move a partition to the least loaded member."""
        topic, owner = each[0], self._owners[each]
        able = [member_id for member_id in self._candidates if topic in self._group.members[member_id].topics]
        new_owner = min(able, key=self._rank)
        if (topic, new_owner, owner) in self._moves:
            raise RefusedError(Refusal(Error.UNKNOWN_SERVER_ERROR, ""))
        self._moves.add((topic, owner, new_owner))
        self._take(each, owner)
        self._give(each, new_owner)

    def _is_balanced(self) -> bool:
        """Return whether no member can get a partition of one that has at least two more."""
        in_order = sorted(self._candidates, key=self._rank)
        if self._loads[in_order[0]] >= self._loads[in_order[-1]] - 1:
            return True
        return not any(
            self._loads[member_id] + 1 < self._loads[self._owners[topic, partition]]
            for member_id in in_order
            for topic in self._group.members[member_id].topics
            for partition in range(self._group.partitions[topic])
        )

    def _give(self, each: TopicPartition, member_id: str) -> None:
        topic, partition = each
        self._owners[each] = member_id
        self._targets[member_id].compute_if_absent(topic)
        self._listed.setdefault((member_id, topic), HashTable(capacity=BUCKETS_MIN)).add(partition)
        self._weigh(member_id, 1)

    def _take(self, each: TopicPartition, member_id: str) -> None:
        topic, partition = each
        listed = self._listed[member_id, topic]
        listed.discard(partition)
        if not listed:
            self._targets[member_id].discard(topic)
            del self._listed[member_id, topic]
        self._weigh(member_id, -1)

    def _weigh(self, member_id: str, more: int) -> None:
        self._loads[member_id] += more
        if self._has_room(member_id):
            self._candidates.add(member_id)
        else:
            self._candidates.discard(member_id)


def _tables(target: Target) -> Iterator[tuple[UUID, HashTable[int]]]:
    for topic in HashTable(target):
        yield topic, HashTable.copy_of(target[topic])
