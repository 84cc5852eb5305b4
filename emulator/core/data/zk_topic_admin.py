"""CreateTopics, DeleteTopics and CreatePartitions as a controller with ZooKeeper validates them.

Its checks have another order and other messages than those of KRaft (`ZkAdminManager`, `AdminZkClient`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from koordinator.wire.primitives import ZERO_UUID

from ..refusal import Refusal, RefusedError
from .topic import PARTITIONS_MAX
from .topic_rules import refuse_hidden_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.wire.messages.create_partitions import CreatePartitionsTopic
    from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    from ..cluster import ClusterState

DUPLICATE_TOPIC = Refusal(Error.INVALID_REQUEST, "Duplicate topic in request.")


def delete_topics(cluster: ClusterState, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete topics, each once; a topic given twice has two equal rows. Rows have no messages.

    A row with both name and id fails the whole request.
    """
    if any(state.name is not None and state.topic_id != ZERO_UUID for state in request.topics):
        return DeleteTopicsResponse(responses=tuple(_deleted(state, Error.INVALID_REQUEST) for state in request.topics))
    results: dict[str, Error] = {}
    return DeleteTopicsResponse(responses=tuple(_delete(cluster, state, results) for state in request.topics))


def _delete(cluster: ClusterState, state: DeleteTopicState, results: dict[str, Error]) -> DeletableTopicResult:
    name = state.name
    if not cluster.settings.delete_topic_enable:
        return _deleted(state, Error.TOPIC_DELETION_DISABLED)
    if name is None:
        by_id = cluster.topics_by_id.get(state.topic_id)
        if by_id is None:
            unknown = Error.TOPIC_AUTHORIZATION_FAILED if state.topic_id == ZERO_UUID else Error.UNKNOWN_TOPIC_ID
            return _deleted(state, unknown)
        name = by_id.name
    if name not in results:
        results[name] = _delete_named(cluster, name)
    return DeletableTopicResult(name=name, topic_id=state.topic_id, error_code=results[name], error_message=None)


def _delete_named(cluster: ClusterState, name: str) -> Error:
    if name in cluster.hidden_topics:
        return refuse_hidden_topic(name).error
    topic = cluster.topics.get(name)
    if topic is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    try:
        cluster.delete_topic(topic)
    except RefusedError as refused:
        return refused.error
    return Error.NONE


def _deleted(state: DeleteTopicState, error: Error) -> DeletableTopicResult:
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=error, error_message=None)


def refuse_growth(cluster: ClusterState, requested: CreatePartitionsTopic) -> Refusal | None:
    """Return why a topic cannot get these partitions, or None."""
    topic = cluster.topics.get(requested.name)
    if topic is None:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{requested.name}' does not exist.")
    before = len(topic.logs)
    added, factor = requested.count - before, len(topic.replicas[0])
    if added < 0:
        problem = f"Topic currently has {before} partitions, which is higher than the requested {requested.count}."
        return Refusal(Error.INVALID_PARTITIONS, problem)
    if added == 0:
        return Refusal(Error.INVALID_PARTITIONS, f"Topic already has {before} partitions.")
    if requested.count > PARTITIONS_MAX:
        return Refusal(Error.INVALID_PARTITIONS, f"Number of partitions must not exceed {PARTITIONS_MAX}.")
    if requested.assignments is not None:
        rows = [tuple(assignment.broker_ids) for assignment in requested.assignments]
        bad = _bad_assignment(cluster, rows, before, added, factor)
        return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, bad) if bad else None
    brokers = len(cluster.brokers)
    if factor > brokers:
        problem = f"Replication factor: {factor} larger than available brokers: {brokers}."
        return Refusal(Error.INVALID_REPLICATION_FACTOR, problem)
    return None


def _bad_assignment(
    cluster: ClusterState, rows: Sequence[tuple[int, ...]], before: int, added: int, factor: int
) -> str | None:
    unknown = dict.fromkeys(str(node) for replicas in rows for node in replicas if node not in cluster.brokers)
    if unknown:
        return f"Unknown broker(s) in replica assignment: {', '.join(unknown)}."
    if len(rows) != added:
        return f"Increasing the number of partitions by {added} but {len(rows)} assignments provided."
    for partition, replicas in enumerate(rows, before):
        if not replicas:
            return f"Cannot have replication factor of 0 for partition id {partition}."
        if len(set(replicas)) != len(replicas):
            shown = ", ".join(map(str, replicas))
            return f"Duplicate brokers not allowed in replica assignment: {shown} for partition id {partition}."
    bad = {partition: len(replicas) for partition, replicas in enumerate(rows, before) if len(replicas) != factor}
    if bad:
        return (
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{', '.join(map(str, bad))}] have replication factors [{', '.join(map(str, bad.values()))}], "
            "respectively."
        )
    return None
