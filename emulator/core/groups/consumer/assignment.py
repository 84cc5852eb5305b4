"""The input and the output of the assignors: subscriptions, partition counts, and target assignments.

A target keeps the order in which its record lists topics and partitions: the tables of the next computation are made
of that list (`core.java.hash_tables`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.values import value

from ...java.hash_tables import HashTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

Target = dict[UUID, tuple[int, ...]]
"""The partitions that a member is to have, by topic id."""


def in_table_order(target: Target) -> Target:
    """Return a target as its tables list it, once they are made of its record."""
    return {topic: tuple(HashTable.copy_of(target[topic])) for topic in HashTable(target)}


@value
class MemberSpec:
    """A member of an assignment.

    `topics` are the existing topics of its subscription, in table order; `names` is the number of topic names in it.
    """

    topics: tuple[UUID, ...]
    names: int
    previous: Target
    instance_id: str | None = None


@value
class GroupSpec:
    """The members in table order, the partition counts of all topics, and the partitions of previous targets.

    `is_equal`: all members have the same subscription.
    """

    members: Mapping[str, MemberSpec]
    partitions: Mapping[UUID, int]
    taken: Collection[tuple[UUID, int]]
    is_equal: bool


class TargetDraft:
    """The new target of a member; it copies the tables of the previous one with the first change.

    Kafka: `AssignorHelpers.deepCopyAssignment`.
    """

    def __init__(self, previous: Target) -> None:
        self._previous = previous
        self._topics: HashTable[UUID] = HashTable(previous)
        self._partitions = {topic: HashTable.copy_of(listed) for topic, listed in previous.items()}
        self._is_copy = False

    def topics(self) -> Iterator[tuple[UUID, list[int]]]:
        """Yield each topic with its partitions, in table order."""
        for topic in list(self._topics):
            yield topic, list(self._partitions[topic])

    def add(self, topic: UUID, partition: int, capacity: int) -> None:
        """Add a partition; `capacity` is that of the set of a new topic."""
        self._copy()
        self._topics.compute_if_absent(topic)
        self._partitions.setdefault(topic, HashTable(capacity=capacity)).add(partition)

    def remove(self, topic: UUID, partition: int) -> None:
        """Remove a partition, and with the last one its topic."""
        self._copy()
        self._partitions[topic].discard(partition)
        if not self._partitions[topic]:
            self.drop(topic)

    def drop(self, topic: UUID) -> None:
        """Remove a topic."""
        self._copy()
        self._topics.discard(topic)
        del self._partitions[topic]

    def result(self) -> Target:
        """Return the target, in the order in which a record lists it."""
        if not self._is_copy:
            return self._previous
        return {topic: tuple(partitions) for topic, partitions in self.topics()}

    def _copy(self) -> None:
        if not self._is_copy:
            self._is_copy = True
            self._topics = HashTable(self._topics, capacity=len(self._topics))
            self._partitions = {topic: HashTable.copy_of(self._partitions[topic]) for topic in self._topics}
