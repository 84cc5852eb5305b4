"""What a consumer brings to its group: its topics, its assignors, and the partitions it holds."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from koordinator.wire.primitives import Malformed

from ...core.data.topic import INTERNAL_TOPICS
from ...core.groups.classic.group import CONSUMER
from ..assignors import ASSIGNORS, Candidate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from koordinator.wire.messages.join_group import JoinGroupResponseMember

    from ...core.cluster import ClusterState
    from ..assignors import Partitions


READ_MAX = 1024
"""So many subscriptions are kept that have been read."""


class ConsumerRole:
    """A consumer that is subscribed to `topics`; None: to every topic there is, like a pattern that fits them all.

    `protocols` are names of assignors. It keeps its partitions while it joins again if all of them are cooperative
    (KIP-429, `ConsumerCoordinator`). `owned` is what it says at its first JoinGroup that it holds.
    """

    protocol_type = CONSUMER

    def __init__(
        self, cluster: ClusterState, protocols: Sequence[str], topics: Sequence[str] | None, owned: Partitions
    ) -> None:
        self._cluster = cluster
        self._assignors = [ASSIGNORS[name] for name in protocols]
        self._topics = topics
        self._is_cooperative = all(assignor.is_cooperative for assignor in self._assignors)
        self._held: dict[str, tuple[int, ...]] = {topic: tuple(owned[topic]) for topic in sorted(owned)}
        # what the sticky assignor remembers of the last generation, though the partitions were given up (KIP-54)
        self._given = self._held
        self._generation = -1
        self._assigned_for: Mapping[str, int] | None = None

    @property
    def holds(self) -> dict[str, list[int]]:
        """Partitions by topic."""
        return {topic: list(partitions) for topic, partitions in self._held.items()}

    def offers(self) -> tuple[tuple[str, bytes], ...]:
        """A subscription for each assignor."""
        topics = tuple(self._subscribed())
        owned = tuple(TopicPartition(topic=topic, partitions=tuple(held)) for topic, held in self._held.items())
        return tuple(
            (
                assignor.name,
                write_subscription(
                    ConsumerProtocolSubscription(
                        topics=topics,
                        user_data=assignor.user_data(self._given, self._generation),
                        owned_partitions=owned,
                        generation_id=self._generation if owned else -1,
                    )
                ),
            )
            for assignor in self._assignors
        )

    def prepare(self, protocol: str | None) -> None:
        """Eager: give up everything. Cooperative: give up what it is not subscribed to any more."""
        del protocol
        if not self._is_cooperative:
            self._held = {}
        elif self._topics is None:
            topics = self._cluster.topics
            self._held = {topic: held for topic, held in self._held.items() if topic in topics}

    def lose(self) -> None:
        """Hold nothing."""
        self._held, self._assigned_for = {}, None

    def assign(
        self, now: int, protocol: str, generation: int, leader_id: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """Let the assignor assign; a member whose subscription cannot be read wants nothing."""
        del now, generation, leader_id
        candidates = [_candidate(member) for member in members]
        wanted = {topic for candidate in candidates for topic in candidate.topics}
        partitions = {topic: self._cluster.partition_count(topic) for topic in sorted(wanted)}
        self._assigned_for = partitions
        there = {topic: count for topic, count in partitions.items() if count > 0}
        assigned = ASSIGNORS[protocol].assign(candidates, there)
        return {
            member_id: write_assignment(
                ConsumerProtocolAssignment(
                    assigned_partitions=tuple(
                        TopicPartition(topic=topic, partitions=tuple(given)) for topic, given in places.items()
                    )
                )
            )
            for member_id, places in assigned.items()
        }

    def take(self, now: int, protocol: str, generation: int, assignment: bytes) -> int | None:
        """Hold what is assigned. A cooperative one that has to give something up joins again at once (KIP-429)."""
        del now, protocol
        try:
            given = {each.topic: each.partitions for each in read_assignment(assignment).assigned_partitions}
        except Malformed:
            # a leader that has left it out sends nothing at all
            given = {}
        revoked = any(set(held) - set(given.get(topic, ())) for topic, held in self._held.items())
        self._held = self._given = given
        self._generation = generation
        return 0 if revoked and self._is_cooperative else None

    def is_outdated(self) -> bool:
        """Whether topics have come, gone or grown since it assigned, as a leader looks for in its metadata."""
        before = self._assigned_for
        if before is None:
            return False
        count = self._cluster.partition_count
        if any(count(topic) != partitions for topic, partitions in before.items()):
            return True
        return self._topics is None and any(topic not in before for topic in self._subscribed())

    def _subscribed(self) -> Sequence[str]:
        if self._topics is not None:
            return self._topics
        return sorted(set(self._cluster.topics) - set(INTERNAL_TOPICS))


_read = lru_cache(maxsize=READ_MAX)(read_subscription)
"""Members say the same again and again."""


def _candidate(member: JoinGroupResponseMember) -> Candidate:
    try:
        wants = _read(member.metadata)
    except Malformed:
        return Candidate(member.member_id, member.group_instance_id)
    return Candidate(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        topics=wants.topics,
        owned={each.topic: each.partitions for each in wants.owned_partitions},
        generation=wants.generation_id,
        user_data=wants.user_data,
    )
