"""Algorithm of the sticky assignors (KIP-54): first balance, then as few moves as possible.

It follows the general case of Kafka's AbstractStickyAssignor, as in kafka-python, with the same results. (For equal
subscriptions Kafka has a faster algorithm with equally balanced and sticky, but different results.)
"""

from collections.abc import Iterable, Mapping, Sequence

from .members import TopicPartition
from .moves import Moves


class OwnershipClaim:
    """A member's subscription and claimed partitions, with the generation of the claim (-1 if unknown)."""

    __slots__ = ("generation", "partitions", "topics")

    def __init__(self, topics: Iterable[str], partitions: Iterable[TopicPartition], generation: int) -> None:
        self.topics = frozenset(topics)
        self.partitions = list(dict.fromkeys(partitions))
        self.generation = generation


class Balancing:
    """The computation of one assignment; `balanced()` runs it.

    Members are indexes into `claims`; the lower index wins ties.
    """

    def __init__(self, claims: Sequence[OwnershipClaim], sizes: Mapping[str, int]) -> None:
        self._topics = [claim.topics.intersection(sizes) for claim in claims]
        subscribers: dict[str, list[int]] = {}
        for member, topics in enumerate(self._topics):
            for topic in topics:
                subscribers.setdefault(topic, []).append(member)
        self._subscribers = {
            (topic, partition): subscribers[topic] for topic in sorted(subscribers) for partition in range(sizes[topic])
        }
        self._assigned: list[list[TopicPartition]] = [[] for _ in claims]
        self._owner: dict[TopicPartition, int] = {}
        self._earlier_owner: dict[TopicPartition, int] = {}
        self._moves = Moves()
        self._accept_claims(claims)

    def balanced(self) -> list[list[TopicPartition]]:
        """Return the partitions of each member."""
        ordered = self._move_order()
        has_revoked = self._revoke_unsubscribed()
        unowned = [partition for partition in ordered if partition not in self._owner]
        for partition in unowned:
            self._give(partition, min(self._subscribers[partition], key=self._load))

        if not has_revoked:
            self._even_out(unowned)
        self._even_out(ordered)
        return self._assigned

    def _accept_claims(self, claims: Sequence[OwnershipClaim]) -> None:
        """Give each partition to its claimant: the newest generation wins, then the lowest member index."""
        claimed: dict[TopicPartition, dict[int, int]] = {}
        for member, claim in enumerate(claims):
            for partition in claim.partitions:
                claimed.setdefault(partition, {}).setdefault(claim.generation, member)
        for partition, by_generation in claimed.items():
            newest, *older = sorted(by_generation, reverse=True)
            self._give(partition, by_generation[newest])
            if older and partition[0] in self._topics[by_generation[older[0]]]:
                self._earlier_owner[partition] = by_generation[older[0]]

    def _move_order(self) -> list[TopicPartition]:
        """Return all partitions in the order in which they are considered for a move.

        Partitions with the fewest subscribers come first. With equal subscriptions and existing claims, take partitions
        one by one from the most loaded member: one with an earlier owner if it has one, else its last one.
        """
        by_subscribers = sorted(self._subscribers, key=lambda partition: (len(self._subscribers[partition]), partition))
        if not any(self._assigned) or len(set(self._topics)) > 1:
            return by_subscribers
        remaining = [[partition for partition in owned if partition in self._subscribers] for owned in self._assigned]
        ordered: dict[TopicPartition, None] = {}
        while any(remaining):
            member = max(range(len(remaining)), key=lambda index: (len(remaining[index]), index))
            disputed = [partition for partition in remaining[member] if partition in self._earlier_owner]
            partition = min(disputed) if disputed else remaining[member][-1]
            remaining[member].remove(partition)
            ordered[partition] = None
        return list(ordered | dict.fromkeys(by_subscribers))

    def _revoke_unsubscribed(self) -> bool:
        """Revoke partitions that are deleted or no longer subscribed; return whether any existing one was revoked."""
        has_revoked = False
        for member, owned in enumerate(self._assigned):
            for partition in list(owned):
                if partition[0] not in self._topics[member] or partition not in self._subscribers:
                    has_revoked = has_revoked or partition in self._subscribers
                    owned.remove(partition)
                    del self._owner[partition]
        return has_revoked

    def _even_out(self, partitions: Sequence[TopicPartition]) -> None:
        """Move partitions to members with a load lower by two or more, until no move improves the balance.

        Every move improves the balance. (Kafka compares the final balance instead and reverts moves without a gain.)
        """
        while self._can_improve() and sum(self._improve(partition) for partition in partitions):
            pass

    def _can_improve(self) -> bool:
        """Return whether loads differ enough for a move; cheaper than a check of every partition."""
        loads = [len(owned) for owned in self._assigned]
        return max(loads) - min(loads) > 1

    def _improve(self, partition: TopicPartition) -> bool:
        taker = self._taker(partition)
        if taker is not None:
            self._reassign(partition, taker)
        return taker is not None

    def _taker(self, partition: TopicPartition) -> int | None:
        limit = len(self._assigned[self._owner[partition]]) - 1
        earlier = self._earlier_owner.get(partition)
        if earlier is not None and len(self._assigned[earlier]) < limit:
            return earlier
        taker = min(self._subscribers[partition], key=self._load)
        return taker if len(self._assigned[taker]) < limit else None

    def _reassign(self, partition: TopicPartition, taker: int) -> None:
        giver = self._owner[partition]
        substitute = self._moves.substitute(partition, giver, taker)
        if self._owner[substitute] != giver:
            self._move(partition, self._owner[substitute])
        self._move(substitute, taker)

    def _move(self, partition: TopicPartition, taker: int) -> None:
        giver = self._owner[partition]
        self._moves.record(partition, giver, taker)
        self._assigned[giver].remove(partition)
        self._give(partition, taker)

    def _give(self, partition: TopicPartition, member: int) -> None:
        self._assigned[member].append(partition)
        self._owner[partition] = member

    def _load(self, member: int) -> tuple[int, int]:
        return len(self._assigned[member]), member
