"""Assignors `sticky` and `cooperative-sticky`, which preserve earlier assignments."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from koordinator.wire.messages import consumer_protocol
from koordinator.wire.messages.assignor_user_data import (
    StickyAssignorUserData,
    read_cooperative_generation,
    read_sticky,
    write_cooperative_generation,
    write_sticky,
)

from .balancing import Balancing, OwnershipClaim
from .members import Assignment, Assignor, Candidate, Partitions, TopicPartition, in_order


def assign_sticky(members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Balance with as few moves as possible, from the earlier assignments in user data (KIP-54)."""
    return _assign(members, partitions, _user_data_claim)


def assign_cooperatively(members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Balance from the owned partitions in subscriptions; leave moved partitions unassigned in this round (KIP-429).

    Their owners revoke them and rejoin; the next round assigns them.
    """
    assigned = _assign(members, partitions, _owned_claim)
    claimed = {member.member_id: set(_pairs(member.owned)) for member in members}
    revoked = {
        partition
        for member, owned in claimed.items()
        for partition in owned - {(topic, p) for topic, ps in assigned[member].items() for p in ps}
    }
    return {
        member: _by_topic(pair for pair in _pairs(by_topic) if pair in claimed[member] or pair not in revoked)
        for member, by_topic in assigned.items()
    }


def _assign(
    members: Sequence[Candidate], partitions: Mapping[str, int], claim: Callable[[Candidate], OwnershipClaim]
) -> Assignment:
    """Run the balancing. Static members win ties (KIP-345); Kafka's sticky assignors compare member ids only."""
    order = in_order(members)
    shares = Balancing([claim(member) for member in order], partitions).balanced() if order else []
    assigned = {member.member_id: _by_topic(share) for member, share in zip(order, shares, strict=True)}
    return {member.member_id: assigned[member.member_id] for member in members}


def _user_data_claim(member: Candidate) -> OwnershipClaim:
    data = read_sticky(member.user_data)
    previous = ((row.topic, partition) for row in data.previous_assignment for partition in row.partitions)
    return OwnershipClaim(member.topics, previous, data.generation)


def _owned_claim(member: Candidate) -> OwnershipClaim:
    generation = member.generation if member.generation >= 0 else read_cooperative_generation(member.user_data)
    return OwnershipClaim(member.topics, _pairs(member.owned), generation)


def _pairs(partitions: Partitions) -> Iterable[TopicPartition]:
    return ((topic, partition) for topic, ps in partitions.items() for partition in ps)


def _by_topic(share: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(share):
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


def _write_assignment(owned: Partitions, generation: int) -> bytes | None:
    if generation < 0 and not owned:
        return None
    previous = tuple(consumer_protocol.TopicPartition(topic=t, partitions=tuple(ps)) for t, ps in owned.items())
    return write_sticky(StickyAssignorUserData(previous_assignment=previous, generation=generation))


def _write_generation(_owned: Partitions, generation: int) -> bytes:
    return write_cooperative_generation(generation)


STICKY = Assignor("sticky", is_cooperative=False, assign=assign_sticky, user_data=_write_assignment)
COOPERATIVE_STICKY = Assignor(
    "cooperative-sticky", is_cooperative=True, assign=assign_cooperatively, user_data=_write_generation
)
