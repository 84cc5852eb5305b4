"""The algorithm of the sticky assignors (KIP-54): as balanced as can be, and then as little moved as can be.

It is that of Kafka's AbstractStickyAssignor, general case, as kafka-python has it, too: the results are the same.
(For equal subscriptions Kafka has a shorter way, whose results are as balanced and as sticky, but not the same.)
"""

from collections.abc import Iterable, Mapping, Sequence

from .members import TopicPartition
from .moves import Moves


class Claim:
    """What one member wants and what it says it has had: topics, partitions, and the generation of those (or -1)."""

    __slots__ = ("generation", "partitions", "topics")

    def __init__(self, topics: Iterable[str], partitions: Iterable[TopicPartition], generation: int) -> None:
        self.topics = frozenset(topics)
        self.partitions = list(dict.fromkeys(partitions))
        self.generation = generation


class Balancing:
    """One assignment in the making; `balanced()` is the whole of it.

    Members are numbers, their places in `claims`: the lower one goes first where all else is equal.
    """

    def __init__(self, claims: Sequence[Claim], sizes: Mapping[str, int]) -> None:
        self._topics = [claim.topics.intersection(sizes) for claim in claims]
        subscribers: dict[str, list[int]] = {}
        for member, topics in enumerate(self._topics):
            for topic in topics:
                subscribers.setdefault(topic, []).append(member)
        self._wanted_by = {
            (topic, partition): subscribers[topic] for topic in sorted(subscribers) for partition in range(sizes[topic])
        }
        self._has: list[list[TopicPartition]] = [[] for _ in claims]
        self._owner: dict[TopicPartition, int] = {}
        self._owner_before: dict[TopicPartition, int] = {}
        self._moves = Moves()
        self._believe(claims)

    def balanced(self) -> list[list[TopicPartition]]:
        """Who gets what, member by member."""
        in_turn = self._candidates()
        must_give = self._give_up_unwanted()
        unowned = [partition for partition in in_turn if partition not in self._owner]
        for partition in unowned:
            self._give(partition, min(self._wanted_by[partition], key=self._load))

        if not must_give:
            self._even_out(unowned)
        self._even_out(in_turn)
        return self._has

    def _believe(self, claims: Sequence[Claim]) -> None:
        """Each partition is its claimant's; of several the one of the newest generation, then the first one."""
        claimed: dict[TopicPartition, dict[int, int]] = {}
        for member, claim in enumerate(claims):
            for partition in claim.partitions:
                claimed.setdefault(partition, {}).setdefault(claim.generation, member)
        for partition, by_generation in claimed.items():
            newest, *older = sorted(by_generation, reverse=True)
            self._give(partition, by_generation[newest])
            if older and partition[0] in self._topics[by_generation[older[0]]]:
                self._owner_before[partition] = by_generation[older[0]]

    def _candidates(self) -> list[TopicPartition]:
        """All partitions in the order in which they are offered to somebody else.

        Those that fewest members want come first. If all want the same and have had something, it is one of the member
        that has most, again and again: one that was another's before if there is one, or else what it got last.
        """
        in_order = sorted(self._wanted_by, key=lambda partition: (len(self._wanted_by[partition]), partition))
        if not any(self._has) or len(set(self._topics)) > 1:
            return in_order
        left = [[partition for partition in has if partition in self._wanted_by] for has in self._has]
        offered: dict[TopicPartition, None] = {}
        while any(left):
            has_most = max(range(len(left)), key=lambda member: (len(left[member]), member))
            disputed = [partition for partition in left[has_most] if partition in self._owner_before]
            partition = min(disputed) if disputed else left[has_most][-1]
            left[has_most].remove(partition)
            offered[partition] = None
        return list(offered | dict.fromkeys(in_order))

    def _give_up_unwanted(self) -> bool:
        """Nobody keeps what does not exist or what it no longer wants; whether there was some of the latter."""
        must_give = False
        for member, has in enumerate(self._has):
            for partition in list(has):
                if partition[0] not in self._topics[member] or partition not in self._wanted_by:
                    must_give = must_give or partition in self._wanted_by
                    has.remove(partition)
                    del self._owner[partition]
        return must_give

    def _even_out(self, offered: Sequence[TopicPartition]) -> None:
        """Move partitions to whoever has less by two or more, until nothing can be gained.

        Every move makes loads more even. (Kafka looks in the end whether they are, and takes it all back if not.)
        """
        while self._can_improve() and sum(self._improve(partition) for partition in offered):
            pass

    def _can_improve(self) -> bool:
        """False if it certainly cannot; to look at every partition takes long."""
        loads = [len(has) for has in self._has]
        return max(loads) - min(loads) > 1

    def _improve(self, partition: TopicPartition) -> bool:
        taker = self._taker(partition)
        if taker is not None:
            self._reassign(partition, taker)
        return taker is not None

    def _taker(self, partition: TopicPartition) -> int | None:
        few_enough = len(self._has[self._owner[partition]]) - 1
        before = self._owner_before.get(partition)
        if before is not None and len(self._has[before]) < few_enough:
            return before
        taker = min(self._wanted_by[partition], key=self._load)
        return taker if len(self._has[taker]) < few_enough else None

    def _reassign(self, partition: TopicPartition, taker: int) -> None:
        giver = self._owner[partition]
        instead = self._moves.instead_of(partition, giver, taker)
        if self._owner[instead] != giver:
            self._move(partition, self._owner[instead])
        self._move(instead, taker)

    def _move(self, partition: TopicPartition, taker: int) -> None:
        giver = self._owner[partition]
        self._moves.moved(partition, giver, taker)
        self._has[giver].remove(partition)
        self._give(partition, taker)

    def _give(self, partition: TopicPartition, member: int) -> None:
        self._has[member].append(partition)
        self._owner[partition] = member

    def _load(self, member: int) -> tuple[int, int]:
        return len(self._has[member]), member
