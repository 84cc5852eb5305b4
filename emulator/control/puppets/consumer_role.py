"""Consumer role: a subscription, assignors, and the assigned partitions."""

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
from ...core.groups.group import CONSUMER
from ..assignors import Candidate, assignor_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from koordinator.wire.messages.join_group import JoinGroupResponseMember

    from ...core.cluster import ClusterState
    from ..assignors import Partitions


READ_MAX = 1024
"""Number of decoded subscriptions in the cache."""


class ConsumerRole:
    """A consumer subscribed to `topics`; None subscribes to all topics, like a pattern that matches every name.

    `protocols` are names of assignors. If all of them are cooperative, the consumer keeps its partitions while it
    rejoins (KIP-429, `ConsumerCoordinator`). The first JoinGroup claims the partitions in `owned`. `metadata` is sent
    in place of the subscription, by protocol: assignors of applications have formats of their own.
    """

    protocol_type = CONSUMER

    def __init__(
        self,
        cluster: ClusterState,
        protocols: Sequence[str],
        topics: Sequence[str] | None,
        owned: Partitions,
        metadata: Mapping[str, bytes],
    ) -> None:
        self._cluster = cluster
        self._assignors = [assignor_of(name) for name in protocols]
        self._metadata = metadata
        self._topics = topics
        self._is_cooperative = all(assignor.is_cooperative for assignor in self._assignors)
        self._held: dict[str, tuple[int, ...]] = {topic: tuple(owned[topic]) for topic in sorted(owned)}
        # the last assignment, which the sticky assignor sends even after a revocation (KIP-54)
        self._last_assignment = self._held
        self._generation = -1
        self._assigned_for: Mapping[str, int] | None = None

    @property
    def holds(self) -> dict[str, list[int]]:
        """Partitions by topic."""
        return {topic: list(partitions) for topic, partitions in self._held.items()}

    def offers(self) -> tuple[tuple[str, bytes], ...]:
        """Return one subscription per assignor, or its metadata."""
        topics = tuple(subscribed_topics(self._cluster, self._topics))
        owned = tuple(TopicPartition(topic=topic, partitions=tuple(held)) for topic, held in self._held.items())
        return tuple(
            (
                assignor.name,
                self._metadata[assignor.name]
                if assignor.name in self._metadata
                else write_subscription(
                    ConsumerProtocolSubscription(
                        topics=topics,
                        user_data=assignor.user_data(self._last_assignment, self._generation),
                        owned_partitions=owned,
                        generation_id=self._generation if owned else -1,
                    )
                ),
            )
            for assignor in self._assignors
        )

    def prepare(self, _protocol: str | None) -> None:
        """Revoke all partitions (eager), or those of topics no longer subscribed (cooperative)."""
        if not self._is_cooperative:
            self._held = {}
        elif self._topics is None:
            topics = self._cluster.topics
            self._held = {topic: held for topic, held in self._held.items() if topic in topics}

    def lose(self) -> None:
        """Discard the assignment."""
        self._held, self._assigned_for = {}, None

    def assign(
        self, _now: int, protocol: str, _generation: int, _leader_id: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """Run the assignor; a member with an unreadable subscription gets no partitions."""
        candidates = [_candidate(member) for member in members]
        topics = {topic for candidate in candidates for topic in candidate.topics}
        partitions = {topic: self._cluster.topics.partition_count(topic) for topic in sorted(topics)}
        self._assigned_for = partitions
        existing = {topic: count for topic, count in partitions.items() if count > 0}
        assigned = assignor_of(protocol).assign(candidates, existing)
        return {
            member_id: write_assignment(
                ConsumerProtocolAssignment(
                    assigned_partitions=tuple(
                        TopicPartition(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()
                    )
                )
            )
            for member_id, by_topic in assigned.items()
        }

    def take(self, _now: int, _protocol: str, generation: int, assignment: bytes) -> int | None:
        """Replace the assignment. A cooperative consumer with revoked partitions rejoins at once (KIP-429)."""
        try:
            assigned = {row.topic: row.partitions for row in read_assignment(assignment).assigned_partitions}
        except Malformed:
            # the assignment is empty if the leader omitted this member
            assigned = {}
        revoked = any(set(held) - set(assigned.get(topic, ())) for topic, held in self._held.items())
        self._held = self._last_assignment = assigned
        self._generation = generation
        return 0 if revoked and self._is_cooperative else None

    def is_assignment_stale(self) -> bool:
        """Return whether subscribed topics were created, deleted or extended since the last assignment."""
        before = self._assigned_for
        if before is None:
            return False
        count = self._cluster.topics.partition_count
        if any(count(topic) != partitions for topic, partitions in before.items()):
            return True
        return self._topics is None and any(topic not in before for topic in subscribed_topics(self._cluster, None))


def subscribed_topics(cluster: ClusterState, topics: Sequence[str] | None) -> Sequence[str]:
    """Return the topics of a subscription; None subscribes to all but internal topics."""
    return sorted(set(cluster.topics) - set(INTERNAL_TOPICS)) if topics is None else topics


_read = lru_cache(maxsize=READ_MAX)(read_subscription)


def _candidate(member: JoinGroupResponseMember) -> Candidate:
    try:
        subscription = _read(member.metadata)
    except Malformed:
        return Candidate(member.member_id, member.group_instance_id)
    return Candidate(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        topics=subscription.topics,
        owned={row.topic: row.partitions for row in subscription.owned_partitions},
        generation=subscription.generation_id,
        user_data=subscription.user_data,
    )
