"""The partitions that members own and subscribe to, read from the coordinator's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_protocol import read_assignment, read_topics
from koordinator.wire.primitives import Malformed

from ...core.groups.classic.group import ClassicGroup
from ...core.groups.consumer.group import ConsumerGroup
from ...core.groups.group import CONSUMER
from ...verify.ownership import MemberAssignment
from .comparison import member_labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from ...core.cluster import ClusterState
    from ...core.groups.classic.group import ClassicMember
    from ...core.groups.group import BaseGroup


def owners_of(cluster: ClusterState, group: BaseGroup) -> tuple[MemberAssignment, ...]:
    """Return the members with their partitions and subscriptions, both empty unless the members are consumers."""
    owned = assignments_of(cluster, group)
    return tuple(
        MemberAssignment(member.instance_id or member.id, owned[member.id], _topics(group, member.id))
        for member in group.members.values()
    )


def assignment_by(
    cluster: ClusterState, group: BaseGroup | None, names: Collection[str]
) -> dict[str, dict[str, list[int]]]:
    """Return each member's partitions, by its name in `names`, or by its label (`member_labels`)."""
    if group is None or (isinstance(group, ClassicGroup) and group.protocol_type != CONSUMER):
        return {}
    members = group.members.values()
    labels = member_labels([(member.instance_id, member.id, member.client_id) for member in members], names)
    return dict(zip(labels, assignments_of(cluster, group).values(), strict=True))


def assignments_of(cluster: ClusterState, group: BaseGroup) -> dict[str, dict[str, list[int]]]:
    """Return the partitions of each member by its id; none if the members are not consumers."""
    if isinstance(group, ConsumerGroup):
        return {each.id: named(cluster, each.assigned) for each in group.members.values()}
    assert isinstance(group, ClassicGroup)
    is_consumer = group.protocol_type == CONSUMER
    return {each.id: partitions(each.assignment) if is_consumer else {} for each in group.members.values()}


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


def named(cluster: ClusterState, by_id: Mapping[UUID, Iterable[int]]) -> dict[str, list[int]]:
    """Return partitions by topic name, sorted, without topics that do not exist any more."""
    topics = cluster.topics_by_id
    return {topics[topic_id].name: sorted(by_id[topic_id]) for topic_id in by_id if topic_id in topics}


def _topics(group: BaseGroup, member_id: str) -> Collection[str]:
    if isinstance(group, ConsumerGroup):
        return group.topics_of(group.members[member_id])
    assert isinstance(group, ClassicGroup)
    return _classic_topics(group, group.members[member_id]) if group.protocol_type == CONSUMER else ()


def _classic_topics(group: ClassicGroup, member: ClassicMember) -> tuple[str, ...]:
    try:
        return read_topics(member.metadata(group.protocol_name))
    except Malformed:
        return ()
