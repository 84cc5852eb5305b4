"""Which partitions the members of a group own, and which they want, as their coordinator has it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_protocol import read_assignment, read_subscription
from koordinator.wire.primitives import Malformed

from ...core.groups.classic.group import CONSUMER
from ...verify.ownership import MemberAssignment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...core.cluster import ClusterState
    from ...core.groups.classic.group import ClassicGroup, ClassicMember


def owners_of(group: ClassicGroup) -> tuple[MemberAssignment, ...]:
    """The members, with what they own and subscribe to: nothing, if they are no consumers."""
    if group.protocol_type != CONSUMER:
        return tuple(MemberAssignment(_label(member), {}, ()) for member in group.members.values())
    return tuple(
        MemberAssignment(_label(member), partitions(member.assignment), _topics(group, member))
        for member in group.members.values()
    )


def assignment_by(group: ClassicGroup | None, names: Collection[str]) -> dict[str, dict[str, list[int]]]:
    """What each member owns, by its instance id, or its client id if that is among `names`, or its member id."""
    if group is None or group.protocol_type != CONSUMER:
        return {}
    clients = Counter(member.client_id for member in group.members.values())
    return {
        member.client_id
        if _label(member) not in names and member.client_id in names and clients[member.client_id] == 1
        else _label(member): partitions(member.assignment)
        for member in group.members.values()
    }


def partition_counts(cluster: ClusterState) -> Mapping[str, int]:
    """How many partitions each topic has."""
    return {name: cluster.partition_count(name) for name in cluster.topics}


def partitions(assignment: bytes) -> dict[str, list[int]]:
    """Topic -> partitions, in order, of a consumer's assignment; nothing if it is none."""
    if not assignment:
        return {}
    try:
        topics = read_assignment(assignment).assigned_partitions
    except Malformed:
        # what a leader sends is its own affair; Kafka never looks at it
        return {}
    return {topic.topic: sorted(topic.partitions) for topic in topics}


def _label(member: ClassicMember) -> str:
    return member.instance_id or member.id


def _topics(group: ClassicGroup, member: ClassicMember) -> tuple[str, ...]:
    try:
        return read_subscription(member.metadata(group.protocol_name), newest=0).topics
    except Malformed:
        return ()
