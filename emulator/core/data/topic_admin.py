"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords, validated as in `ReplicationControlManager`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from koordinator.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from koordinator.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from koordinator.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from koordinator.wire.primitives import ZERO_UUID

from ..dialect import dialect_of
from ..refusal import Refusal, RefusedError
from .config_rows import topic_config_rows
from .metadata_changes import RecordsDeleted
from .topic import TopicState
from .topic_configs import refuse_configs
from .topic_rules import created_together, refuse_assignment, refuse_hidden_topic, refuse_name, refuse_shape

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from ..cluster import ClusterState

T = TypeVar("T", CreatableTopic, CreatePartitionsTopic)

DUPLICATE_NAME = Refusal(Error.INVALID_REQUEST, "Duplicate topic name.")
DUPLICATE_ID = Refusal(Error.INVALID_REQUEST, "Duplicate topic id.")
DUPLICATE_OF_AN_ID = Refusal(Error.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")
BOTH = Refusal(Error.INVALID_REQUEST, "You may not specify both topic name and topic id.")
NEITHER = Refusal(Error.INVALID_REQUEST, "Neither topic name nor id were specified.")
UNKNOWN_TOPIC = Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
UNKNOWN_ID = Refusal(Error.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def not_controller(
    request: CreateTopicsRequest | CreatePartitionsRequest | DeleteTopicsRequest,
) -> CreateTopicsResponse | CreatePartitionsResponse | DeleteTopicsResponse:
    """Return the response of a broker that is not the controller."""
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(
                topics=tuple(create_error(topic.name, Error.NOT_CONTROLLER) for topic in request.topics)
            )
        case CreatePartitionsRequest():
            return CreatePartitionsResponse(
                results=tuple(growth(topic.name, Error.NOT_CONTROLLER) for topic in request.topics)
            )
        case DeleteTopicsRequest():
            return DeleteTopicsResponse(
                responses=tuple(_delete_error(state, Error.NOT_CONTROLLER) for state in request.topics)
            )


def create_topics(cluster: ClusterState, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create topics, or only validate the request. A name given twice is refused in one row."""
    together = created_together(cluster, [topic.name for topic in request.topics])
    return CreateTopicsResponse(
        topics=tuple(
            create_error(topic.name, DUPLICATE_NAME)
            if duplicate
            else _create(cluster, topic, together, validate_only=request.validate_only)
            for topic, duplicate in by_name(request.topics)
        )
    )


def by_name(topics: Sequence[T]) -> list[tuple[T, bool]]:
    """Return the first topic of each name, and whether the name is given more than once."""
    counts = Counter(topic.name for topic in topics)
    firsts: dict[str, T] = {}
    for topic in topics:
        firsts.setdefault(topic.name, topic)
    return [(topic, counts[name] > 1) for name, topic in firsts.items()]


def _create(
    cluster: ClusterState, requested: CreatableTopic, together: Collection[str], *, validate_only: bool
) -> CreatableTopicResult:
    configs = {config.name: config.value for config in requested.configs if config.value is not None}
    refusal = (
        refuse_name(cluster, requested.name, together)
        or _refuse_nulls(requested)
        or refuse_configs(cluster.settings, configs)
    )
    replicas = None
    if refusal is None and requested.assignments:
        replicas, refusal = _assignment(cluster, requested)
    elif refusal is None:
        refusal = refuse_shape(cluster, requested.num_partitions, requested.replication_factor)
    if refusal is not None:
        return create_error(requested.name, refusal)
    if replicas is None:
        partitions = cluster.partitions_or_default(requested.num_partitions)
        replication_factor = cluster.replication_factor(requested.replication_factor)
    else:
        partitions, replication_factor = len(replicas), len(replicas[0])
    if validate_only:
        # the controller creates it, and writes nothing
        topic_id = cluster.new_uuid()
    else:
        try:
            topic = cluster.create_topic(
                requested.name, partitions, configs, replicas, replication_factor=replication_factor, together=together
            )
        except RefusedError as error:
            return create_error(requested.name, error.refusal)
        topic_id = topic.topic_id
    # the controller repeats values as they were sent (`KafkaConfigSchema.toConfigEntry`)
    return created(cluster, requested.name, topic_id, (partitions, replication_factor), configs, as_sent=configs)


def created(
    cluster: ClusterState,
    name: str,
    topic_id: UUID,
    shape: tuple[int, int],
    configs: Mapping[str, str],
    as_sent: Mapping[str, str],
) -> CreatableTopicResult:
    """Return the row of a new topic; `shape` is its number of partitions and its replication factor.

    Values `as_sent` are not parsed and printed.
    """
    return CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=shape[0],
        replication_factor=shape[1],
        configs=tuple(
            CreatableTopicConfigs(
                name=row.name,
                value=as_sent.get(row.name, row.value),
                read_only=False,
                config_source=row.config_source,
                is_sensitive=False,
            )
            for row in topic_config_rows(cluster, configs)
        ),
    )


def _refuse_nulls(requested: CreatableTopic) -> Refusal | None:
    if nulls := [config.name for config in requested.configs if config.value is None]:
        return Refusal(Error.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return None


def _assignment(
    cluster: ClusterState, requested: CreatableTopic
) -> tuple[list[tuple[int, ...]] | None, Refusal | None]:
    if requested.replication_factor != -1:
        problem = "A manual partition assignment was specified, but replication factor was not set to -1."
        return None, Refusal(Error.INVALID_REQUEST, problem)
    if requested.num_partitions != -1:
        problem = "A manual partition assignment was specified, but numPartitions was not set to -1."
        return None, Refusal(Error.INVALID_REQUEST, problem)
    by_index: dict[int, tuple[int, ...]] = {}
    for assignment in requested.assignments:
        index, brokers = assignment.partition_index, tuple(assignment.broker_ids)
        if index in by_index:
            problem = f"Found multiple manual partition assignments for partition {index}"
            return None, Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem)
        factor = len(next(iter(by_index.values()), brokers))
        if refusal := refuse_assignment(cluster, [brokers], factor):
            return None, refusal
        by_index[index] = brokers
    if set(by_index) != set(range(len(by_index))):
        problem = "partitions should be a consecutive 0-based integer sequence"
        return None, Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    return [by_index[index] for index in range(len(by_index))], refuse_shape(cluster, len(by_index), -1)


def create_error(name: str, refusal: Refusal | Error) -> CreatableTopicResult:
    """Return the row of a topic that is not created."""
    error, message = _code_and_message(refusal)
    return CreatableTopicResult(name=name, error_code=error, error_message=message, configs=())


def _code_and_message(refusal: Refusal | Error) -> tuple[Error, str | None]:
    return (refusal, None) if isinstance(refusal, Error) else (refusal.error, refusal.error_message)


def delete_topics(cluster: ClusterState, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete topics by name or id.

    A topic that is given twice is refused in one row (INVALID_REQUEST, `ControllerApis.deleteTopics`).
    """
    counts = Counter(request.topics)
    topics = {state: _find_topic(cluster, state) for state in request.topics}
    ids = {state.topic_id for state in topics if state.name is None}
    named = {
        topic.topic_id
        for state, topic in topics.items()
        if isinstance(topic, TopicState) and state.name is not None and counts[state] == 1
    }
    rows = []
    for state, topic in topics.items():
        if isinstance(topic, Refusal) and topic in (BOTH, NEITHER):
            rows += [_delete_error(state, topic)] * counts[state]
        elif counts[state] > 1:
            rows.append(_delete_error(state, DUPLICATE_ID if state.name is None else DUPLICATE_NAME))
        elif isinstance(topic, TopicState) and state.name is not None and topic.topic_id in ids:
            twice = DeleteTopicState(name=state.name, topic_id=topic.topic_id)
            rows.append(_delete_error(twice, DUPLICATE_OF_AN_ID))
        elif state.name is not None or state.topic_id not in named:
            rows.append(_delete(cluster, state, topic))
    return DeleteTopicsResponse(responses=tuple(rows))


def _delete(cluster: ClusterState, state: DeleteTopicState, topic: TopicState | Refusal) -> DeletableTopicResult:
    if isinstance(topic, Refusal):
        return _delete_error(state, topic)
    try:
        cluster.delete_topic(topic)
    except RefusedError as error:
        return _delete_error(state, error.refusal)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_message=None)


def _delete_error(state: DeleteTopicState, refusal: Refusal | Error) -> DeletableTopicResult:
    error, message = _code_and_message(refusal)
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=error, error_message=message)


def _find_topic(cluster: ClusterState, state: DeleteTopicState) -> TopicState | Refusal:
    if not cluster.settings.delete_topic_enable:
        return Refusal(Error.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    if state.name is not None and state.topic_id != ZERO_UUID:
        return BOTH
    if state.name is not None and state.name in cluster.topics.hidden:
        return refuse_hidden_topic(state.name)
    if state.name is not None:
        return cluster.topics.get(state.name) or UNKNOWN_TOPIC
    if state.topic_id == ZERO_UUID:
        return NEITHER
    return cluster.topics.by_id.get(state.topic_id) or UNKNOWN_ID


def create_partitions(cluster: ClusterState, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Add partitions to topics, or only validate the request. A name given twice is refused in one row."""
    rows = []
    for topic, duplicate in by_name(request.topics):
        refusal = DUPLICATE_NAME if duplicate else _grow(cluster, topic, validate_only=request.validate_only)
        rows.append(growth(topic.name, refusal or Error.NONE))
    return CreatePartitionsResponse(results=tuple(rows))


def growth(name: str, refusal: Refusal | Error) -> CreatePartitionsTopicResult:
    """Return the row of a topic that was to grow."""
    error, message = _code_and_message(refusal)
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)


def _grow(cluster: ClusterState, requested: CreatePartitionsTopic, *, validate_only: bool) -> Refusal | Error | None:
    refusal = _refuse_growth(cluster, requested)
    if refusal is not None or validate_only:
        return refusal
    return grow(cluster, cluster.topics[requested.name], requested)


def grow(cluster: ClusterState, topic: TopicState, requested: CreatePartitionsTopic) -> Refusal | None:
    """Add partitions to a topic; return why they cannot be written, or None."""
    replicas = None
    if requested.assignments is not None:
        replicas = [tuple(assignment.broker_ids) for assignment in requested.assignments]
    try:
        cluster.grow_topic(topic, requested.count, replicas)
    except RefusedError as error:
        return error.refusal
    return None


def _refuse_growth(cluster: ClusterState, requested: CreatePartitionsTopic) -> Refusal | Error | None:
    topic = cluster.topics.get(requested.name)
    if topic is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    before = len(topic.logs)
    if requested.count == before:
        return Refusal(Error.INVALID_PARTITIONS, f"Topic already has {before} partition(s).")
    if requested.count < before:
        problem = (
            f"The topic {topic.name} currently has {before} partition(s); {requested.count} would not be an increase."
        )
        return Refusal(Error.INVALID_PARTITIONS, problem)
    refusal = refuse_shape(cluster, requested.count, -1)
    if refusal is None and requested.assignments is not None:
        replicas = [tuple(assignment.broker_ids) for assignment in requested.assignments]
        refusal = refuse_assignment(cluster, replicas, len(topic.replicas[0]))
        if len(replicas) != requested.count - before:
            problem = (
                f"Attempted to add {requested.count - before} additional partition(s), "
                f"but only {len(replicas)} assignment(s) were specified."
            )
            refusal = Refusal(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    return refusal


def delete_records(cluster: ClusterState, node_id: int, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Move the start of logs (KIP-107); -1 empties the log. An offset before the start is no error.

    Of a partition that is given twice the last offset counts (`KafkaApis.handleDeleteRecordsRequest`).
    """
    offsets = {(topic.name, each.partition_index): each.offset for topic in request.topics for each in topic.partitions}
    rows: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for (name, partition), offset in offsets.items():
        rows.setdefault(name, []).append(_truncate(cluster, node_id, name, partition, offset))
    return DeleteRecordsResponse(
        topics=tuple(DeleteRecordsTopicResult(name=name, partitions=tuple(each)) for name, each in rows.items())
    )


def _truncate(
    cluster: ClusterState, node_id: int, name: str, partition: int, offset: int
) -> DeleteRecordsPartitionResult:
    topic, log = cluster.topics.find(name), cluster.topics.log(name, partition)
    error = Error.NONE
    if topic is None or log is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif topic.is_internal or name in cluster.topics.hidden:
        error = Error.INVALID_TOPIC_EXCEPTION
    elif refused := cluster.leaders.check(topic, partition, node_id):
        error = refused
    elif not topic.has_retention and (topic.is_compacted or not dialect_of(cluster.settings).deletes_without_policy):
        error = Error.POLICY_VIOLATION
    elif not -1 <= offset <= log.end:
        error = Error.OFFSET_OUT_OF_RANGE
    if topic is None or log is None or error:
        return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=-1, error_code=error)
    start = log.end if offset == -1 else offset
    try:
        cluster.storage.propose(RecordsDeleted(topic.topic_id, partition, start))
    except RefusedError as refused:
        return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=-1, error_code=refused.error)
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=max(start, log.start))
