"""The assignor `uniform` for different subscriptions: keep, fill from the least loaded member on, balance.

Kafka: `UniformHeterogeneousAssignmentBuilder`, since 4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...java.hash_tables import LOAD_FACTOR
from .assignment import TargetDraft

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from .assignment import GroupSpec, Target

BALANCE_ROUNDS_MAX = 16
"""The number of times that the balancing looks at every topic."""


def assign_mixed_subscriptions(group: GroupSpec) -> dict[str, Target]:
    """Return the targets of members with any subscriptions, in members' order."""
    return _Assignment(group).targets()


class _Assignment:
    """An assignment in the making; members are numbers in their order, and a load is a number of partitions."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._drafts = [TargetDraft(member.previous) for member in group.members.values()]
        self._loads = [0] * len(self._drafts)
        self._owners: dict[tuple[UUID, int], int] = {}
        self._subscribers: dict[UUID, list[int]] = {}
        for number, member in enumerate(group.members.values()):
            for topic in member.topics:
                self._subscribers.setdefault(topic, []).append(number)

    def targets(self) -> dict[str, Target]:
        topics = sorted(self._subscribers, key=self._urgency)
        self._keep()
        for topic in topics:
            self._fill(topic)
        self._balance([topic for topic in topics if len(self._subscribers[topic]) > 1])
        return {member_id: draft.result() for member_id, draft in zip(self._group.members, self._drafts, strict=True)}

    def _urgency(self, topic: UUID) -> tuple[float, int, int, int]:
        """Return the sort key of a topic: those with the most partitions per subscriber come first."""
        subscribers = len(self._subscribers[topic])
        high, low = topic.int >> 64, topic.int & 0xFFFFFFFFFFFFFFFF
        return -(self._group.partitions[topic] / subscribers), subscribers, _signed(high), _signed(low)

    def _keep(self) -> None:
        for number, (member, draft) in enumerate(zip(self._group.members.values(), self._drafts, strict=True)):
            for topic, partitions in draft.topics():
                if topic in member.topics:
                    self._owners |= dict.fromkeys(((topic, partition) for partition in partitions), number)
                    self._loads[number] += len(partitions)
                else:
                    draft.drop(topic)

    def _fill(self, topic: UUID) -> None:
        free = [at for at in range(self._group.partitions[topic]) if (topic, at) not in self._owners]
        levels = _Levels(self._subscribers[topic], self._loads)
        for partition in free:
            self._give(topic, partition, levels.next_least())

    def _balance(self, topics: Sequence[UUID]) -> None:
        last_moved: UUID | None = None
        for _ in range(BALANCE_ROUNDS_MAX):
            for topic in topics:
                if topic == last_moved:
                    return
                if self._balance_topic(topic) or last_moved is None:
                    last_moved = topic

    def _balance_topic(self, topic: UUID) -> bool:
        """Move partitions of a topic from the most to the least loaded members; return whether any was moved."""
        levels = _Levels(self._subscribers[topic], self._loads)
        if levels.difference <= 1 + 2:
            return False
        owned: dict[int, list[int]] = {}
        for partition in range(self._group.partitions[topic]):
            owned.setdefault(self._owners[topic, partition], []).append(partition)
        moved = False
        while levels.difference > 1:
            most = levels.next_most()
            while most is not None and not owned.get(most):
                levels.exclude_most()
                most = levels.next_most()
            if most is None:
                break
            partition, least = owned[most].pop(), levels.next_least()
            if levels.difference <= 1:
                break
            self._drafts[most].remove(topic, partition)
            self._loads[most] -= 1
            self._give(topic, partition, least)
            moved = True
        return moved

    def _give(self, topic: UUID, partition: int, number: int) -> None:
        share = -(-self._group.partitions[topic] // len(self._subscribers[topic]))
        self._drafts[number].add(topic, partition, int(share / LOAD_FACTOR) + 1)
        self._owners[topic, partition] = number
        self._loads[number] += 1


class _Levels:
    """The rounds over the subscribers of a topic, from the least loaded up and from the most loaded down.

    Both work on one list, sorted when the rounds begin; loads are looked up as they are now.
    """

    def __init__(self, subscribers: Iterable[int], loads: Sequence[int]) -> None:
        self._loads = loads
        self._order = order = sorted(subscribers, key=lambda number: (loads[number], number))
        self._least_level, self._least_end, self._least_at = loads[order[0]] - 1, 0, 0
        self._most_level, self._most_start, self._most_end = loads[order[-1]] + 1, len(order), len(order)
        self._most_at = len(order) - 1

    @property
    def difference(self) -> int:
        return self._most_level - self._least_level

    def next_least(self) -> int:
        order, loads = self._order, self._loads
        if self._least_at >= self._least_end:
            self._least_level += 1
            while self._least_end < len(order) and loads[order[self._least_end]] == self._least_level:
                self._least_end += 1
            self._least_at = 0
        self._least_at += 1
        return order[self._least_at - 1]

    def next_most(self) -> int | None:
        order, loads = self._order, self._loads
        if self._most_at < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_level = loads[order[self._most_start - 1]]
            else:
                self._most_level -= 1
            while self._most_start > 0 and loads[order[self._most_start - 1]] == self._most_level:
                self._most_start -= 1
            self._most_at = self._most_end - 1
        if self._most_at < 0:
            return None
        self._most_at -= 1
        return order[self._most_at + 1]

    def exclude_most(self) -> None:
        """Leave out the member that `next_most` has returned."""
        order, at, last = self._order, self._most_at + 1, self._most_end - 1
        order[at], order[last] = order[last], order[at]
        self._most_end = last


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
