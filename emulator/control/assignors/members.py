"""Types of assignors: members with subscriptions, partitions and assignments."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from koordinator.wire.values import value

Partitions = Mapping[str, Sequence[int]]
"""Partitions by topic."""

TopicPartition = tuple[str, int]
"""A partition of a topic."""

Assignment = dict[str, dict[str, list[int]]]
"""Partitions by topic by member id: partitions ascending, topics by name, without empty topics."""


@value
class Candidate:
    """A member with its decoded subscription, as the leader receives it in the JoinGroup response.

    `owned` are the partitions of a version 1 subscription (KIP-429), `generation` that of version 2 (KIP-792; -1 if
    absent). `user_data` holds the same information for the sticky assignor (KIP-54).
    """

    member_id: str
    instance_id: str | None = None
    topics: Sequence[str] = ()
    owned: Partitions = field(default_factory=dict)
    generation: int = -1
    user_data: bytes | None = None


@value
class Assignor:
    """A partition assignor of the consumer protocol.

    `assign(members, partitions)` returns an entry for every member; `partitions` holds the number of partitions of each
    existing topic. `user_data(owned, generation)` returns the user data of a member's next subscription, or None.
    Members of a cooperative assignor keep their partitions during a rejoin (KIP-429).
    """

    name: str
    is_cooperative: bool
    assign: Callable[[Sequence[Candidate], Mapping[str, int]], Assignment]
    user_data: Callable[[Partitions, int], bytes | None]


def in_order(members: Iterable[Candidate]) -> list[Candidate]:
    """Sort members as assignors process them: static members by instance id, then dynamic members by member id.

    A static member thus keeps its place across restarts (KIP-345; Kafka's AbstractPartitionAssignor.MemberInfo).
    """
    return sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id))


def subscribers(members: Iterable[Candidate], partitions: Mapping[str, int]) -> dict[str, list[Candidate]]:
    """Return the sorted subscribers of each existing topic, by topic name."""
    by_topic: dict[str, list[Candidate]] = {}
    for member in in_order(members):
        for topic in dict.fromkeys(member.topics):
            by_topic.setdefault(topic, []).append(member)
    return {topic: by_topic[topic] for topic in sorted(by_topic) if topic in partitions}


def no_user_data(_owned: Partitions, _generation: int) -> None:
    """Return no user data, for assignors without state."""
