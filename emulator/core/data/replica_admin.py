"""ElectLeaders, reassignments, log directories and the quorum, of a cluster that has one copy of each log.

Each broker has one log directory, whose size is unknown. Each
broker is a controller as well, and has all of the metadata log. Texts and codes are those of KRaft
(`ReplicationControlManager`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from koordinator.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from koordinator.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from koordinator.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    QuorumNode,
    QuorumPartitionData,
    QuorumTopicData,
    ReplicaState,
)
from koordinator.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from koordinator.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from koordinator.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from koordinator.wire.primitives import ZERO_UUID

from ..dialect import dialect_of
from ..refusal import Refusal
from . import reassignments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call
    from .topic import TopicState

LOG_DIR = "/tmp/kafka-logs"  # noqa: S108 - a name that clients see, no file
"""The path of a broker's log directory: Kafka's default of `log.dir`."""

METADATA_TOPIC = "__cluster_metadata"
"""The metadata log, which has one partition and is no topic that clients can read."""

QUORUM_NODES_SINCE = 2
"""The first version of DescribeQuorum with the controllers' addresses (KIP-853)."""

CONTROLLER = "CONTROLLER"
"""The listener of the controllers."""

FIXED_VOTERS = "Cluster doesn't support {} voter because the kraft.version feature is 0"

PREFERRED, UNCLEAN = 0, 1
"""The types of elections."""

_ELECTION_FAILED = {
    PREFERRED: Refusal(Error.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
    UNCLEAN: Refusal(Error.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."),
}


def elect_leaders(cluster: ClusterState, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect preferred leaders, or leaders of partitions without one; null stands for all that need it."""
    kind = request.election_type
    topics = request.topic_partitions
    if topics is None:
        topics = tuple(
            TopicPartitions(topic=topic.name, partitions=tuple(range(len(topic.logs))))
            for topic in cluster.topics.values()
        )
    results = []
    for topic in topics:
        rows = [_election(cluster, kind, topic.topic, partition) for partition in topic.partitions]
        if request.topic_partitions is None:
            rows = [row for row in rows if row.error_code != Error.ELECTION_NOT_NEEDED]
        if rows or request.topic_partitions is not None:
            results.append(ReplicaElectionResult(topic=topic.topic, partition_result=tuple(rows)))
    error = Error.NONE if kind in _ELECTION_FAILED else Error.INVALID_REQUEST
    return ElectLeadersResponse(error_code=error, replica_election_results=tuple(results))


def _election(cluster: ClusterState, kind: int, name: str, partition: int) -> PartitionResult:
    return elected(partition, _elect(cluster, kind, name, partition))


def elected(partition: int, refusal: Refusal | None) -> PartitionResult:
    """Return the row of a partition with an election, or without one."""
    if refusal is None:
        return PartitionResult(partition_id=partition, error_message=None)
    return PartitionResult(partition_id=partition, error_code=refusal.error, error_message=refusal.error_message)


def _elect(cluster: ClusterState, kind: int, name: str, partition: int) -> Refusal | None:
    if kind not in _ELECTION_FAILED:
        return Refusal(Error.INVALID_REQUEST, f"Unknown election type {kind}")
    topic = cluster.topics.get(name)
    if topic is None:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if topic.log(partition) is None:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition}")
    return elect(cluster, kind, topic, partition)


def elect(cluster: ClusterState, kind: int, topic: TopicState, partition: int) -> Refusal | None:
    """Elect the leader of a partition; return why there is no election, or None."""
    leader, replicas = topic.leaders[partition], topic.replicas[partition]
    if cluster.brokers.is_up(leader) if kind == UNCLEAN else leader == replicas[0]:
        return Refusal(Error.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    elected = next((node for node in replicas[: None if kind == UNCLEAN else 1] if cluster.brokers.is_up(node)), None)
    if elected is None:
        return _ELECTION_FAILED[kind]
    cluster.leaders.move(topic, partition, elected)
    return None


def alter_partition_reassignments(
    cluster: ClusterState, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Give partitions other replicas (`reassignments`), or cancel their reassignments."""
    responses = []
    for asked in request.topics:
        rows = []
        for partition in asked.partitions:
            refusal = _reassign(cluster, asked.name, partition, keeps_count=not request.allow_replication_factor_change)
            rows.append(reassigned(partition.partition_index, refusal))
        responses.append(ReassignableTopicResponse(name=asked.name, partitions=tuple(rows)))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=tuple(responses),
    )


def reassigned(partition: int, refusal: Refusal | None) -> ReassignablePartitionResponse:
    """Return the row of a partition with other replicas, or with those that it had."""
    return ReassignablePartitionResponse(
        partition_index=partition,
        error_code=refusal.error if refusal else Error.NONE,
        error_message=refusal.error_message if refusal else None,
    )


def _reassign(cluster: ClusterState, name: str, asked: ReassignablePartition, *, keeps_count: bool) -> Refusal | None:
    topic = cluster.topics.get(name)
    if topic is None:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition, replicas = asked.partition_index, asked.replicas
    if topic.log(partition) is None:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition}.")
    if replicas is None:
        if partition not in topic.reassignments:
            return Refusal(Error.NO_REASSIGNMENT_IN_PROGRESS, "")
        reassignments.cancel(cluster, topic, partition)
        return None
    problem = _replicas_problem(cluster, replicas)
    if problem is not None:
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {problem}.")
    before = len(topic.replicas[partition])
    if keeps_count and len(replicas) != before:
        problem = f"The replication factor is changed from {before} to {len(replicas)}"
        return Refusal(Error.INVALID_REPLICATION_FACTOR, problem)
    reassignments.begin(cluster, topic, partition, replicas)
    return None


def _replicas_problem(cluster: ClusterState, replicas: tuple[int, ...]) -> str | None:
    if not replicas:
        return "an empty replica list"
    for node in sorted(replicas):
        if node not in cluster.brokers:
            return f"broker {node}, but no such broker is registered"
        if replicas.count(node) > 1:
            return f"the broker {node} more than once"
    return None


def list_partition_reassignments(
    cluster: ClusterState, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the ongoing reassignments."""
    return ListPartitionReassignmentsResponse(error_message=None, topics=reassignments.ongoing(cluster, request))


def describe_log_dirs(cluster: ClusterState, node_id: int, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Return the replicas of a broker with the sizes of their logs; unknown partitions are omitted."""
    topics = []
    wanted: dict[str, Iterable[int]]
    if request.topics is None:
        wanted = {topic.name: range(len(topic.logs)) for topic in cluster.topics.values()}
    else:
        wanted = {topic.topic: topic.partitions for topic in request.topics}
    for name, partitions in wanted.items():
        topic = cluster.topics.get(name)
        rows = () if topic is None else tuple(_replicas(topic, node_id, partitions))
        if rows:
            topics.append(DescribeLogDirsTopic(name=name, partitions=rows))
    return DescribeLogDirsResponse(results=(DescribeLogDirsResult(log_dir=LOG_DIR, topics=tuple(topics)),))


def _replicas(topic: TopicState, node_id: int, partitions: Iterable[int]) -> Iterator[DescribeLogDirsPartition]:
    for partition in partitions:
        log = topic.log(partition)
        if log is not None and node_id in topic.replicas[partition]:
            yield DescribeLogDirsPartition(partition_index=partition, partition_size=log.size)


def alter_replica_log_dirs(cluster: ClusterState, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Refuse to move replicas to another directory: LOG_DIR_NOT_FOUND. Those of this one are there already."""
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(
                        partition_index=partition, error_code=_move_error(cluster, moved.path, topic.name, partition)
                    )
                    for partition in topic.partitions
                ),
            )
            for moved in request.dirs
            for topic in moved.topics
        )
    )


def _move_error(cluster: ClusterState, path: str, name: str, partition: int) -> Error:
    if path != LOG_DIR:
        return Error.LOG_DIR_NOT_FOUND
    return Error.NONE if cluster.topics.log(name, partition) else Error.REPLICA_NOT_AVAILABLE


def describe_quorum(cluster: ClusterState, call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Return the controllers; 3 in every row unless exactly the partition of the metadata log is requested."""
    asked = [(topic.topic_name, row.partition_index) for topic in request.topics for row in topic.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        error, message = Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        return DescribeQuorumResponse(
            error_message="",
            topics=tuple(
                QuorumTopicData(
                    topic_name=topic.topic_name,
                    partitions=tuple(
                        QuorumPartitionData(
                            partition_index=row.partition_index, error_code=error, error_message=message
                        )
                        for row in topic.partitions
                    ),
                )
                for topic in request.topics
            ),
        )
    end = cluster.topics.version + cluster.topics.leader_changes
    quorum = QuorumPartitionData(
        error_message="",
        leader_id=cluster.brokers.controller_id,
        leader_epoch=1,
        high_watermark=end,
        current_voters=tuple(ReplicaState(replica_id=node_id, log_end_offset=end) for node_id in cluster.brokers),
    )
    return DescribeQuorumResponse(
        error_message="",
        topics=(QuorumTopicData(topic_name=METADATA_TOPIC, partitions=(quorum,)),),
        nodes=tuple(
            QuorumNode(node_id=broker.node_id, listeners=(Listener(name=CONTROLLER, host=at.host, port=at.port),))
            for broker, at in cluster.brokers.reachable(call.listener)
            if call.api_version >= QUORUM_NODES_SINCE
        ),
    )


def unregister_broker(cluster: ClusterState, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Refuse to forget an unknown broker (102); a known one registers again at once."""
    if request.broker_id in cluster.brokers:
        return UnregisterBrokerResponse(error_message="")
    text = f"Broker ID {request.broker_id} is not currently registered"
    message = text if dialect_of(cluster.settings).unregister_broker_explains_errors else ""
    return UnregisterBrokerResponse(error_code=Error.BROKER_ID_NOT_REGISTERED, error_message=message)


def add_raft_voter(cluster: ClusterState, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse a voter, as a cluster whose voters are fixed does (`KafkaRaftClient.handleAddVoterRequest`)."""
    refusal = _refuse_voter(cluster, request, "add")
    listeners = {listener.name.upper(): listener for listener in request.listeners}
    if refusal is None and CONTROLLER not in listeners:
        shown = ", ".join(
            f"ListenerName({name})={listeners[name].host}/<unresolved>:{listeners[name].port}" for name in listeners
        )
        problem = (
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) for the default "
            f"listener ListenerName({CONTROLLER})"
        )
        refusal = Refusal(Error.INVALID_REQUEST, problem)
    if refusal is None:
        refusal = Refusal(Error.UNSUPPORTED_VERSION, FIXED_VOTERS.format("adding"))
    return AddRaftVoterResponse(error_code=refusal.error, error_message=refusal.message)


def remove_raft_voter(cluster: ClusterState, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Refuse to remove a voter, as a cluster whose voters are fixed does."""
    refusal = _refuse_voter(cluster, request, "remove")
    if refusal is None:
        refusal = Refusal(Error.UNSUPPORTED_VERSION, FIXED_VOTERS.format("removing"))
    return RemoveRaftVoterResponse(error_code=refusal.error, error_message=refusal.message)


def _refuse_voter(
    cluster: ClusterState, request: AddRaftVoterRequest | RemoveRaftVoterRequest, verb: str
) -> Refusal | None:
    if request.cluster_id not in {None, cluster.cluster_id}:
        problem = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster.cluster_id}"'
        return Refusal(Error.INCONSISTENT_CLUSTER_ID, problem)
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return Refusal(Error.INVALID_REQUEST, f"{verb.title()} voter request didn't include a valid voter")
    return None


RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    ApiKey.DESCRIBE_LOG_DIRS: lambda cluster, node, _, request: describe_log_dirs(cluster, node, request),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda cluster, _, __, request: alter_replica_log_dirs(cluster, request),
    ApiKey.DESCRIBE_QUORUM: lambda cluster, _, call, request: describe_quorum(cluster, call, request),
    ApiKey.UNREGISTER_BROKER: lambda cluster, _, __, request: unregister_broker(cluster, request),
    ApiKey.ADD_RAFT_VOTER: lambda cluster, _, __, request: add_raft_voter(cluster, request),
    ApiKey.REMOVE_RAFT_VOTER: lambda cluster, _, __, request: remove_raft_voter(cluster, request),
}
"""The responders of these APIs; called with cluster, node id, call and request."""
