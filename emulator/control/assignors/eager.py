"""range and roundrobin: they know nothing of the generation before."""

from collections.abc import Mapping, Sequence

from .members import Assignment, Assignor, Candidate, in_order, nothing, subscribers


def assign_ranges(members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Topic by topic, a run of partitions for each subscriber; the first ones get one more, until it comes out even.

    Kafka's RangeAssignor where no racks are known.
    """
    assigned: Assignment = {member.member_id: {} for member in members}
    for topic, wanting in subscribers(members, partitions).items():
        each, with_one_more = divmod(partitions[topic], len(wanting))
        start = 0
        for place, member in enumerate(wanting):
            end = start + each + (place < with_one_more)
            if end == start:
                break
            assigned[member.member_id][topic] = list(range(start, end))
            start = end
    return assigned


def assign_in_turns(members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """All partitions of all topics, one for each member in turn; who is not subscribed to the topic is passed over.

    Kafka's RoundRobinAssignor.
    """
    assigned: Assignment = {member.member_id: {} for member in members}
    order = [(member.member_id, frozenset(member.topics)) for member in in_order(members)]
    turn = 0
    for topic in subscribers(members, partitions):
        for partition in range(partitions[topic]):
            while topic not in order[turn % len(order)][1]:
                turn += 1
            assigned[order[turn % len(order)][0]].setdefault(topic, []).append(partition)
            turn += 1
    return assigned


RANGE = Assignor("range", is_cooperative=False, assign=assign_ranges, user_data=nothing)
ROUND_ROBIN = Assignor("roundrobin", is_cooperative=False, assign=assign_in_turns, user_data=nothing)
