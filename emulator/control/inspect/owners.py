"""The partitions that members own and subscribe to, read from the coordinator's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_protocol import InvalidLength, read_assignment, read_topics
from koordinator.wire.primitives import Malformed

from ...core.groups.group import CONSUMER
from ...verify.ownership import MemberAssignment
from .comparison import member_labels

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...core.cluster import ClusterState
    from ...core.groups.classic.group import ClassicGroup, ClassicMember


def owners_of(group: ClassicGroup) -> tuple[MemberAssignment, ...]:
    """Return the members with their partitions and subscriptions, both empty unless the members are consumers."""
    if group.protocol_type != CONSUMER:
        return tuple(MemberAssignment(_label(member), {}, ()) for member in group.members.values())
    return tuple(
        MemberAssignment(_label(member), partitions(member.assignment), _topics(group, member))
        for member in group.members.values()
    )


def assignment_by(group: ClassicGroup | None, names: Collection[str]) -> dict[str, dict[str, list[int]]]:
    """Return each member's partitions, by its name in `names`, or by its label (`member_labels`)."""
    if group is None or group.protocol_type != CONSUMER:
        return {}
    members = group.members.values()
    labels = member_labels([(member.instance_id, member.id, member.client_id) for member in members], names)
    return {label: partitions(member.assignment) for label, member in zip(labels, members, strict=True)}


def partition_counts(cluster: ClusterState) -> Mapping[str, int]:
    """Return the number of partitions of each topic."""
    return {name: cluster.partition_count(name) for name in cluster.topics}


def partitions(assignment: bytes) -> dict[str, list[int]]:
    """Return the partitions by topic of a consumer's assignment, sorted; empty if it cannot be parsed."""
    if not assignment:
        return {}
    try:
        topics = read_assignment(assignment).assigned_partitions
    except Malformed:
        # a broker treats the leader's assignments as opaque bytes
        return {}
    return {topic.topic: sorted(topic.partitions) for topic in topics}


def _label(member: ClassicMember) -> str:
    return member.instance_id or member.id


def _topics(group: ClassicGroup, member: ClassicMember) -> tuple[str, ...]:
    try:
        return read_topics(member.metadata(group.protocol_name))
    except (Malformed, InvalidLength):
        return ()
