"""ElectLeaders and AlterPartitionReassignments as a controller with ZooKeeper answers them (`KafkaController`)."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignableTopicResponse,
)
from koordinator.wire.messages.elect_leaders import ElectLeadersResponse, ReplicaElectionResult
from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse

from ..refusal import Refusal
from . import reassignments
from .replica_admin import PREFERRED, UNCLEAN, elect, elected, reassigned

if TYPE_CHECKING:
    from koordinator.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
    from koordinator.wire.messages.elect_leaders import ElectLeadersRequest
    from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

    from ..cluster import ClusterState
    from .topic import TopicState

UNKNOWN = Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
FAILED = Refusal(Error.UNKNOWN_SERVER_ERROR, "")
NOT_IN_PROGRESS = Refusal(Error.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")


def elect_leaders(cluster: ClusterState, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect preferred leaders, or leaders of partitions without one; null stands for all that need it.

    A partition that is given twice has one row. An unknown type fails the whole request.
    """
    asked, kind = request.topic_partitions, request.election_type
    if kind not in {PREFERRED, UNCLEAN}:
        failed = (
            ReplicaElectionResult(
                topic=topic.topic, partition_result=tuple(elected(each, FAILED) for each in topic.partitions)
            )
            for topic in asked or ()
        )
        return ElectLeadersResponse(error_code=FAILED.error, replica_election_results=tuple(failed))
    if asked is None:
        places = [(topic.name, index) for topic in cluster.topics.values() for index in range(len(topic.logs))]
    else:
        places = [(topic.topic, index) for topic in asked for index in topic.partitions]
    rows = {place: elected(place[1], _elect(cluster, kind, *place)) for place in places}
    if asked is None:
        rows = {place: row for place, row in rows.items() if row.error_code != Error.ELECTION_NOT_NEEDED}
    by_topic = groupby(sorted(rows), key=itemgetter(0))
    results = (
        ReplicaElectionResult(topic=name, partition_result=tuple(rows[place] for place in found))
        for name, found in by_topic
    )
    return ElectLeadersResponse(replica_election_results=tuple(results))


def _elect(cluster: ClusterState, kind: int, name: str, partition: int) -> Refusal | None:
    topic = _known(cluster, name, partition)
    return UNKNOWN if topic is None else elect(cluster, kind, topic, partition)


def _known(cluster: ClusterState, name: str, partition: int) -> TopicState | None:
    topic = cluster.topics.get(name)
    return None if topic is None or topic.log(partition) is None else topic


def alter_partition_reassignments(
    cluster: ClusterState, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Give partitions other replicas, at once. Of a partition that is given twice the last replicas count."""
    asked = {(topic.name, each.partition_index): each.replicas for topic in request.topics for each in topic.partitions}
    rows = {place: reassigned(place[1], _reassign(cluster, *place, asked[place])) for place in sorted(asked)}
    responses = (
        ReassignableTopicResponse(name=name, partitions=tuple(rows[place] for place in found))
        for name, found in groupby(rows, key=itemgetter(0))
    )
    return AlterPartitionReassignmentsResponse(error_message="", responses=tuple(responses))


def list_partition_reassignments(
    cluster: ClusterState, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the ongoing reassignments."""
    return ListPartitionReassignmentsResponse(error_message="", topics=reassignments.ongoing(cluster, request))


def _reassign(cluster: ClusterState, name: str, partition: int, replicas: tuple[int, ...] | None) -> Refusal | None:
    if replicas is None:
        return NOT_IN_PROGRESS
    topic = _known(cluster, name, partition)
    problem = _problem(cluster, replicas, () if topic is None else topic.replicas[partition])
    if problem is not None:
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    if topic is None:
        return UNKNOWN
    reassignments.begin(cluster, topic, partition, replicas)
    return None


def _problem(cluster: ClusterState, replicas: tuple[int, ...], before: tuple[int, ...]) -> str | None:
    if not replicas:
        return "Empty replica list specified in partition reassignment."
    if len(set(replicas)) < len(replicas):
        return f"Duplicate replica ids in partition reassignment replica list: {_buffer(replicas)}"
    if min(replicas) < 0:
        return f"Invalid broker id in replica list: {_buffer(replicas)}"
    added = tuple(node for node in replicas if node not in before)
    if all(map(cluster.brokers.is_up, added)):
        return None
    live = ", ".join(str(node) for node in cluster.brokers if cluster.brokers.is_up(node))
    shown = f"Replica list: {_buffer(added)}, live broker list: Set({live})"
    return f"Replica assignment has brokers that are not alive. {shown}"


def _buffer(nodes: tuple[int, ...]) -> str:
    return f"ArrayBuffer({', '.join(map(str, nodes))})"
