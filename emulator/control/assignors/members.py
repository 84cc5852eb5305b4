"""What an assignor is given and what it is: members that want topics, topics that have partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Partitions = Mapping[str, Sequence[int]]
"""Partitions by topic."""

TopicPartition = tuple[str, int]
"""A partition of a topic."""

Assignment = dict[str, dict[str, list[int]]]
"""Partitions by topic by member id: ascending, topics in the order of their names, none that is empty."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member as its leader sees it: JoinGroup's answer with the subscription inside it decoded.

    `owned` and `generation` are what a subscription of version 1 (KIP-429) and 2 (KIP-792) says the member still
    holds and since when (-1: it does not say); `user_data` is where the sticky assignor says the same (KIP-54).
    """

    member_id: str
    instance_id: str | None = None
    topics: Sequence[str] = ()
    owned: Partitions = field(default_factory=dict)
    generation: int = -1
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Assignor:
    """A partition assignor of the consumer protocol, under the name members vote for.

    `assign(members, partitions)` is what a leader does: partitions has the number of partitions by topic, and a topic
    that is not in it does not exist. Every member is in what comes back, with an empty place if it gets nothing.
    `user_data(owned, generation)` is what a member puts into its next subscription for it, or None.
    A cooperative assignor's members keep what they own while they join again (KIP-429).
    """

    name: str
    is_cooperative: bool
    assign: Callable[[Sequence[Candidate], Mapping[str, int]], Assignment]
    user_data: Callable[[Partitions, int], bytes | None]


def in_order(members: Iterable[Candidate]) -> list[Candidate]:
    """Members as assignors go through them: static ones by instance id, then dynamic ones by member id.

    A static member has its place again after a restart, though its member id is a new one (KIP-345; Kafka's
    AbstractPartitionAssignor.MemberInfo).
    """
    return sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id))


def subscribers(members: Iterable[Candidate], partitions: Mapping[str, int]) -> dict[str, list[Candidate]]:
    """Who wants a topic, in order, by topics that exist, in the order of their names."""
    wanted: dict[str, list[Candidate]] = {}
    for member in in_order(members):
        for topic in dict.fromkeys(member.topics):
            wanted.setdefault(topic, []).append(member)
    return {topic: wanted[topic] for topic in sorted(wanted) if topic in partitions}


def nothing(_owned: Partitions, _generation: int) -> None:
    """The user data of an assignor that wants to know nothing."""
