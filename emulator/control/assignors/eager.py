"""Assignors `range` and `roundrobin`, which ignore earlier assignments."""

from collections.abc import Mapping, Sequence

from .members import Assignment, Assignor, Candidate, in_order, no_user_data, subscribers


def assign_ranges(members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Assign a contiguous range of each topic's partitions to each subscriber; the first ones get the remainder.

    Kafka's RangeAssignor without racks.
    """
    assigned: Assignment = {member.member_id: {} for member in members}
    for topic, subscribed in subscribers(members, partitions).items():
        quota, remainder = divmod(partitions[topic], len(subscribed))
        start = 0
        for index, member in enumerate(subscribed):
            end = start + quota + (index < remainder)
            if end == start:
                break
            assigned[member.member_id][topic] = list(range(start, end))
            start = end
    return assigned


def assign_round_robin(members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Assign all partitions to members in turn, skipping members not subscribed to the topic.

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


RANGE = Assignor("range", is_cooperative=False, assign=assign_ranges, user_data=no_user_data)
ROUND_ROBIN = Assignor("roundrobin", is_cooperative=False, assign=assign_round_robin, user_data=no_user_data)
