"""Reassignments of partitions (KIP-455): new replicas are added first, and the others removed when those are in sync.

Here a replica is in sync while its broker is up, so a reassignment ends at once unless it adds a broker that is down.
It goes on when that broker starts. Kafka: `PartitionReassignmentReplicas`, `PartitionReassignmentRevert`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.list_partition_reassignments import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

from ..dialect import dialect_of
from .topic import Reassignment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

    from ..cluster import ClusterState
    from .topic import TopicState


def begin(cluster: ClusterState, topic: TopicState, partition: int, target: tuple[int, ...]) -> None:
    """Give a partition other replicas, as soon as those that are added are in sync."""
    current, ongoing = topic.replicas[partition], topic.reassignments.get(partition, Reassignment())
    added, removed = tuple(sorted({*target} - {*current})), tuple(sorted({*current} - {*target}))
    if target == current:
        return
    topic.replicas[partition] = *target, *removed
    if added or removed or partition in topic.reassignments:
        topic.reassignments[partition] = Reassignment(added or ongoing.adding, removed or ongoing.removing)
    if partition not in topic.reassignments:
        _lead(cluster, topic, partition)
    elif not _complete(cluster, topic, partition):
        cluster.leaders.replicas_changed(topic, partition)


def cancel(cluster: ClusterState, topic: TopicState, partition: int) -> None:
    """Give a partition the replicas back that it had before its ongoing reassignment."""
    adding = topic.reassignments.pop(partition).adding
    topic.replicas[partition] = tuple(node for node in topic.replicas[partition] if node not in adding)
    _lead(cluster, topic, partition)


def complete_all(cluster: ClusterState) -> None:
    """End the reassignments whose new replicas are in sync by now."""
    for topic in cluster.topics.values():
        for partition in list(topic.reassignments):
            _complete(cluster, topic, partition)


def ongoing(cluster: ClusterState, request: ListPartitionReassignmentsRequest) -> tuple[OngoingTopicReassignment, ...]:
    """Return the ongoing reassignments, of all partitions or those of a request."""
    if request.topics is None:
        asked: Iterable[tuple[str, Iterable[int]]] = (
            (topic.name, sorted(topic.reassignments)) for topic in cluster.topics.values()
        )
    else:
        asked = ((topic.name, topic.partition_indexes) for topic in request.topics)
    topics = (
        OngoingTopicReassignment(name=name, partitions=tuple(_rows(cluster.topics[name], partitions)))
        for name, partitions in asked
        if name in cluster.topics
    )
    return tuple(topic for topic in topics if topic.partitions)


def _rows(topic: TopicState, partitions: Iterable[int]) -> Iterator[OngoingPartitionReassignment]:
    for partition in partitions:
        reassignment = topic.reassignments.get(partition)
        if reassignment is not None:
            yield OngoingPartitionReassignment(
                partition_index=partition,
                replicas=topic.replicas[partition],
                adding_replicas=reassignment.adding,
                removing_replicas=reassignment.removing,
            )


def _complete(cluster: ClusterState, topic: TopicState, partition: int) -> bool:
    reassignment, replicas = topic.reassignments[partition], topic.lasting_replicas(partition)
    in_sync = {node for node in replicas if cluster.brokers.is_up(node)}
    # a partition that gets fewer replicas waits for all of them, so that no more copies are lost than necessary
    waits_for_all = len(reassignment.adding) < len(reassignment.removing)
    if waits_for_all or not dialect_of(cluster.settings).reassignment_awaits_added_alone:
        awaited = replicas
    else:
        awaited = reassignment.adding
    if not in_sync or not in_sync.issuperset(awaited):
        return False
    del topic.reassignments[partition]
    topic.replicas[partition] = replicas
    _lead(cluster, topic, partition)
    return True


def _lead(cluster: ClusterState, topic: TopicState, partition: int) -> None:
    """Begin a leader epoch of a partition with other replicas: its leader remains, or the first that is up leads."""
    leader, replicas = topic.leaders[partition], topic.replicas[partition]
    up = (node for node in replicas if cluster.brokers.is_up(node))
    cluster.leaders.move(topic, partition, leader if leader in replicas else next(up, replicas[0]))
