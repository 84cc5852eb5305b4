"""CreateTopics, DeleteTopics and CreatePartitions as a controller with ZooKeeper validates them.

Its checks have another order and other messages than those of KRaft (`ZkAdminManager`, `AdminZkClient`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import CreatePartitionsResponse
from koordinator.wire.messages.create_topics import CreateTopicsResponse
from koordinator.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from koordinator.wire.primitives import ZERO_UUID

from ...config.settings import PARTITIONS_MAX
from ..java.hash_order import scala_mutable_order
from ..refusal import Refusal, RefusedError
from .metadata_changes import TopicCreated
from .topic import NAME_MAX, NO_LEADER
from .topic import illegal_name as is_illegal
from .topic_admin import by_name, create_error, created, grow, growth
from .topic_configs import refuse_configs
from .topic_rules import refuse_hidden_topic, refuse_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
    from koordinator.wire.messages.create_topics import CreatableTopic, CreatableTopicResult, CreateTopicsRequest
    from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    from ..cluster import ClusterState
    from .topic import TopicState

DUPLICATE_ENTRY = Refusal(Error.INVALID_REQUEST, "Found multiple entries for this topic.")
DUPLICATE_TOPIC = Refusal(Error.INVALID_REQUEST, "Duplicate topic in request.")
QUEUED = Refusal(Error.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
BOTH = Refusal(
    Error.INVALID_REQUEST,
    "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time.",
)


def illegal_name(name: str) -> str | None:
    """Return why a topic name is illegal, in the words of these releases (`Topic.validate`), or None."""
    if is_illegal(name) is None:
        return None
    if name == "":
        return "Topic name is illegal, it can't be empty"
    if name in {".", ".."}:
        return 'Topic name cannot be "." or ".."'
    if len(name) > NAME_MAX:
        return f"Topic name is illegal, it can't be longer than {NAME_MAX} characters, topic name: {name}"
    return f"Topic name \"{name}\" is illegal, it contains a character other than ASCII alphanumerics, '.', '_' and '-'"


def bad_path(path: str) -> str | None:
    """Return why ZooKeeper has no such path, or None. Names are the ends of paths (`PathUtils.validatePath`)."""
    if path.endswith("/"):
        return "Path must not end with / character"
    if path.endswith(("/.", "/..")):
        return f'Invalid path string "{path}" caused by relative paths not allowed @{len(path) - 1}'
    return None


def create_topics(cluster: ClusterState, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create topics, or only validate the request. A name given twice is refused in each of its rows."""
    times = Counter(topic.name for topic in request.topics)
    once = {topic.name: topic for topic in request.topics if times[topic.name] == 1}
    rows = {name: _create(cluster, once[name], request) for name in scala_mutable_order(once)}
    return CreateTopicsResponse(
        topics=tuple(rows.get(topic.name) or create_error(topic.name, DUPLICATE_ENTRY) for topic in request.topics)
    )


def _create(cluster: ClusterState, requested: CreatableTopic, request: CreateTopicsRequest) -> CreatableTopicResult:
    name, configs = requested.name, {config.name: config.value or "" for config in requested.configs}
    placed = _placed(cluster, requested)
    refusal = (
        placed
        if isinstance(placed, Refusal)
        else _refuse_name(cluster, name) or _refuse_assignment(placed) or refuse_configs(cluster.settings, configs)
    )
    if isinstance(placed, Refusal) or refusal is not None:
        return create_error(name, refusal or Error.NONE)
    if 0 not in placed:
        # it looks at the replicas of partition 0
        return create_error(name, Error.UNKNOWN_SERVER_ERROR)
    topic_id, replicas = ZERO_UUID, tuple(placed[partition] for partition in sorted(placed))
    if not request.validate_only:
        topic_id = cluster.new_uuid()
        try:
            cluster.storage.propose(TopicCreated(topic_id, name, replicas, configs))
        except RefusedError as refused:
            return create_error(name, refused.refusal)
        if not all(any(map(cluster.brokers.is_up, nodes)) for nodes in replicas):
            # it waits for the leaders
            return replace(create_error(name, Error.REQUEST_TIMED_OUT), topic_id=topic_id)
    return created(cluster, name, topic_id, (len(replicas), len(replicas[0])), configs, as_sent={})


def _placed(cluster: ClusterState, requested: CreatableTopic) -> dict[int, tuple[int, ...]] | Refusal:
    """Return the replicas by partition, which may be those of unknown brokers, or a refusal."""
    if requested.name in cluster.topics:
        return Refusal(Error.TOPIC_ALREADY_EXISTS, f"Topic '{requested.name}' already exists.")
    nulls = [config.name for config in requested.configs if config.value is None]
    is_early = cluster.features.dialect.fails_at_absent_configs
    if nulls and is_early:
        return Refusal(Error.UNKNOWN_SERVER_ERROR, "")
    if nulls:
        return Refusal(Error.INVALID_REQUEST, f"Null value not supported for topic configs : {','.join(nulls)}")
    configs = {config.name: config.value or "" for config in requested.configs}
    if is_early and (refusal := refuse_configs(cluster.settings, configs)):
        return refusal
    if requested.assignments:
        if (requested.num_partitions, requested.replication_factor) != (-1, -1):
            return BOTH
        return {each.partition_index: tuple(each.broker_ids) for each in requested.assignments}
    partitions = cluster.partitions_or_default(requested.num_partitions)
    factor = cluster.replication_factor(requested.replication_factor)
    if partitions <= 0:
        return Refusal(Error.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    return (
        _refuse_factor(cluster, factor)
        or _refuse_many(partitions)
        or dict(enumerate(cluster.brokers.place_replicas(range(partitions), factor)))
    )


def _refuse_factor(cluster: ClusterState, factor: int) -> Refusal | None:
    brokers = sum(broker.is_up for broker in cluster.brokers.values())
    problem = f"Replication factor: {factor} larger than available brokers: {brokers}." if factor > brokers else None
    if factor <= 0:
        problem = "Replication factor must be larger than 0."
    return Refusal(Error.INVALID_REPLICATION_FACTOR, problem) if problem else None


def _refuse_many(partitions: int) -> Refusal | None:
    if partitions <= PARTITIONS_MAX:
        return None
    return Refusal(Error.INVALID_PARTITIONS, f"Number of partitions must not exceed {PARTITIONS_MAX}.")


def _refuse_name(cluster: ClusterState, name: str) -> Refusal | None:
    problem = illegal_name(name)
    if problem is not None:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, problem)
    refusal = refuse_name(cluster, name)
    return refusal and Refusal(refusal.error, refusal.message.replace("existing topic:", "existing topics:"))


def _refuse_assignment(replicas: Mapping[int, tuple[int, ...]]) -> Refusal | None:
    problem = None
    if len(set(map(len, replicas.values()))) > 1:
        problem = "All partitions should have the same number of replicas"
    elif any(len(set(nodes)) < len(nodes) for nodes in replicas.values()):
        shown = (f"{partition} -> ArrayBuffer({_listed(replicas[partition])})" for partition in sorted(replicas))
        problem = f"Duplicate replica assignment found: HashMap({', '.join(shown)})"
    elif sum(each for each in replicas if each >= 0) != sum(range(len(replicas))):
        problem = "partitions should be a consecutive 0-based integer sequence"
    return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem) if problem else None


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def delete_topics(cluster: ClusterState, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete topics, each once; a topic given twice has two equal rows. Rows have no messages.

    A row with both name and id fails the whole request.
    """
    if not cluster.settings.delete_topic_enable:
        rows = (_deleted(state, Error.TOPIC_DELETION_DISABLED) for state in request.topics)
        return DeleteTopicsResponse(responses=tuple(rows))
    if any(state.name is not None and state.topic_id != ZERO_UUID for state in request.topics):
        rows = (_deleted(state, Error.INVALID_REQUEST) for state in request.topics)
        return DeleteTopicsResponse(responses=tuple(rows))
    names = [_name(cluster, state) for state in request.topics]
    results = {name: _delete_named(cluster, name) for name in dict.fromkeys(names) if name is not None}
    rows = (
        _deleted(state, _unknown(state))
        if name is None
        else DeletableTopicResult(name=name, topic_id=state.topic_id, error_code=results[name], error_message=None)
        for state, name in zip(request.topics, names, strict=True)
    )
    return DeleteTopicsResponse(responses=tuple(rows))


def _name(cluster: ClusterState, state: DeleteTopicState) -> str | None:
    topic = cluster.topics.by_id.get(state.topic_id)
    return state.name if topic is None else topic.name


def _unknown(state: DeleteTopicState) -> Error:
    return Error.TOPIC_AUTHORIZATION_FAILED if state.topic_id == ZERO_UUID else Error.UNKNOWN_TOPIC_ID


def _delete_named(cluster: ClusterState, name: str) -> Error:
    if name in cluster.topics.hidden:
        return refuse_hidden_topic(name).error
    topic = cluster.topics.get(name)
    if topic is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    try:
        cluster.delete_topic(topic)
    except RefusedError as refused:
        return refused.error
    down = {node for replicas in topic.replicas for node in replicas if not cluster.brokers.is_up(node)}
    if down:
        # their replicas cannot be deleted (`TopicDeletionManager.onTopicDeletion`)
        cluster.topics.queued_deletions[name] = down
    return Error.NONE


def _deleted(state: DeleteTopicState, error: Error) -> DeletableTopicResult:
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=error, error_message=None)


def create_partitions(cluster: ClusterState, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Add partitions to topics, or only validate the request. A name given twice is refused in one row.

    A name that ZooKeeper cannot look for fails the whole request, though not the topics before it.
    """
    rows = []
    for topic, duplicate in by_name(request.topics):
        if not duplicate and bad_path(f"/brokers/topics/{topic.name}"):
            failed = (growth(each.name, Error.UNKNOWN_SERVER_ERROR) for each in request.topics)
            return CreatePartitionsResponse(results=tuple(failed))
        refusal = DUPLICATE_TOPIC if duplicate else _refuse_growth(cluster, topic)
        if refusal is None and not request.validate_only:
            refusal = _grow(cluster, topic)
        rows.append(growth(topic.name, refusal or Error.NONE))
    return CreatePartitionsResponse(results=tuple(rows))


def _grow(cluster: ClusterState, requested: CreatePartitionsTopic) -> Refusal | None:
    topic = _in_zookeeper(cluster, requested.name)
    assert topic is not None
    refusal = grow(cluster, topic, requested)
    is_led = all(leader != NO_LEADER for leader in topic.leaders)
    return refusal or (None if is_led else Refusal(Error.REQUEST_TIMED_OUT, ""))


def _refuse_growth(cluster: ClusterState, requested: CreatePartitionsTopic) -> Refusal | None:
    """Return why a topic cannot get these partitions, or None."""
    if requested.name in cluster.topics.queued_deletions:
        return QUEUED
    topic = _in_zookeeper(cluster, requested.name)
    if topic is None:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{requested.name}' does not exist.")
    before = len(topic.logs)
    added, factor = requested.count - before, len(topic.replicas[0])
    if added < 0:
        problem = f"Topic currently has {before} partitions, which is higher than the requested {requested.count}."
        return Refusal(Error.INVALID_PARTITIONS, problem)
    if added == 0:
        return Refusal(Error.INVALID_PARTITIONS, f"Topic already has {before} partitions.")
    refusal = _refuse_many(requested.count)
    if refusal is not None or requested.assignments is None:
        return refusal or _refuse_factor(cluster, factor)
    rows = [tuple(assignment.broker_ids) for assignment in requested.assignments]
    bad = _bad_assignment(cluster, rows, before, added, factor)
    return Refusal(Error.INVALID_REPLICA_ASSIGNMENT, bad) if bad else None


def _in_zookeeper(cluster: ClusterState, name: str) -> TopicState | None:
    return cluster.topics.get(name) or cluster.topics.unled.get(name)


def _bad_assignment(
    cluster: ClusterState, rows: Sequence[tuple[int, ...]], before: int, added: int, factor: int
) -> str | None:
    unknown = dict.fromkeys(node for replicas in rows for node in replicas if not cluster.brokers.is_up(node))
    if unknown:
        return f"Unknown broker(s) in replica assignment: {_listed([*unknown])}."
    if len(rows) != added:
        return f"Increasing the number of partitions by {added} but {len(rows)} assignments provided."
    for partition, replicas in enumerate(rows, before):
        if not replicas:
            return f"Cannot have replication factor of 0 for partition id {partition}."
        if len(set(replicas)) != len(replicas):
            shown = _listed(replicas)
            return f"Duplicate brokers not allowed in replica assignment: {shown} for partition id {partition}."
    bad = {partition: len(replicas) for partition, replicas in enumerate(rows, before) if len(replicas) != factor}
    if bad:
        return (
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{_listed([*bad])}] have replication factors [{_listed([*bad.values()])}], respectively."
        )
    return None
