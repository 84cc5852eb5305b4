"""The partitions that members own and subscribe to, read from the coordinator's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.groups.classic.group import CLASSIC
from ...core.groups.group import CONSUMER
from ...verify.ownership import MemberAssignment
from .comparison import member_labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from ...core.cluster import ClusterState
    from ...core.groups.group import BaseGroup


def owners_of(cluster: ClusterState, group: BaseGroup) -> tuple[MemberAssignment, ...]:
    """Return the members with their partitions and subscriptions, both empty unless the members are consumers."""
    owned = assignments_of(cluster, group)
    return tuple(
        MemberAssignment(member.instance_id or member.id, owned[member.id], group.subscribed_topics(member.id))
        for member in group.members.values()
    )


def assignment_by(
    cluster: ClusterState, group: BaseGroup | None, names: Collection[str]
) -> dict[str, dict[str, list[int]]]:
    """Return each member's partitions, by its name in `names`, or by its label (`member_labels`)."""
    if group is None or (group.kind == CLASSIC and group.listed_protocol_type != CONSUMER):
        return {}
    members = group.members.values()
    labels = member_labels([(member.instance_id, member.id, member.client_id) for member in members], names)
    return dict(zip(labels, assignments_of(cluster, group).values(), strict=True))


def assignments_of(cluster: ClusterState, group: BaseGroup) -> dict[str, dict[str, list[int]]]:
    """Return the partitions of each member by its id; none if the members are not consumers."""
    return {member_id: group.partitions_of(member_id, cluster.topics.by_id) for member_id in group.members}


def partition_counts(cluster: ClusterState) -> Mapping[str, int]:
    """Return the number of partitions of each topic."""
    return {name: cluster.topics.partition_count(name) for name in cluster.topics}


def named(cluster: ClusterState, by_id: Mapping[UUID, Iterable[int]]) -> dict[str, list[int]]:
    """Return partitions by topic name, sorted, without topics that do not exist any more."""
    topics = cluster.topics.by_id
    return {topics[topic_id].name: sorted(by_id[topic_id]) for topic_id in by_id if topic_id in topics}
