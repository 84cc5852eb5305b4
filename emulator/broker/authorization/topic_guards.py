"""The rights of topic APIs that need more than a right for each row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopicResult
from koordinator.wire.messages.delete_topics import DeletableTopicResult
from koordinator.wire.messages.describe_topic_partitions import DescribeTopicPartitionsResponse, TopicRequest
from koordinator.wire.messages.metadata import MetadataResponseTopic
from koordinator.wire.primitives import ZERO_UUID

from ...config.kafka_configs import BROKER_LOGGER, GROUP, TOPIC, configs_of
from ...core.acls.acl import CLUSTER_NAME, Operation, ResourceType
from ...core.data.metadata import LOOKUP_BY_ID_SINCE
from ...core.data.topic import INTERNAL_TOPICS
from .cluster_guards import cluster_operations
from .guards import TEXTS, Admitted, Refused, merged, rows_refused

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
    from koordinator.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
    from koordinator.wire.messages.metadata import MetadataRequest, MetadataResponse
    from koordinator.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

    from .guards import Client, Guard

TOPIC_REFUSED = Error.TOPIC_AUTHORIZATION_FAILED


def metadata(client: Client, request: MetadataRequest) -> Admitted:
    """Need Describe of each topic, and Create of those that the request would create."""
    if request.topics is None:
        return Admitted(request, lambda response: _all_described(client, response))
    ids = tuple(replace(row, name=None) for row in request.topics if row.topic_id != ZERO_UUID)
    is_by_id = bool(ids) or any(row.name is None for row in request.topics)
    if is_by_id and client.call.api_version < LOOKUP_BY_ID_SINCE:
        # it is refused for that
        return Admitted(request)
    # beside ids names are ignored
    asked = ids or request.topics
    refused: dict[object, MetadataResponseTopic] = {}
    for row in asked:
        name = client.name_of(row)
        if not name:
            continue
        if not client.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            shown = None if ids else name
            refused[shown or row.topic_id] = MetadataResponseTopic(
                error_code=TOPIC_REFUSED, name=shown, topic_id=row.topic_id
            )
        elif not ids and _would_create(client, request, name) and not _may_create(client, name):
            refused[name] = MetadataResponseTopic(
                error_code=TOPIC_REFUSED, name=name, is_internal=name in INTERNAL_TOPICS
            )
    allowed = tuple(row for row in asked if (row.name or row.topic_id) not in refused)

    def complete(response: MetadataResponse) -> MetadataResponse:
        described = _with_operations(client, response)
        return replace(described, topics=(*described.topics, *refused.values()))

    return Admitted(replace(request, topics=allowed), complete)


def _would_create(client: Client, request: MetadataRequest, name: str) -> bool:
    creates = request.allow_auto_topic_creation and client.cluster.settings.auto_create_topics_enable
    return creates and client.cluster.topics.find(name) is None


def _may_create(client: Client, name: str) -> bool:
    return client.can(Operation.CREATE, ResourceType.CLUSTER) or client.may(Operation.CREATE, ResourceType.TOPIC, name)


def _all_described(client: Client, response: MetadataResponse) -> MetadataResponse:
    """Leave out the topics that the client may not describe."""
    rows = (each for each in response.topics if client.can(Operation.DESCRIBE, ResourceType.TOPIC, each.name or ""))
    return _with_operations(client, replace(response, topics=tuple(rows)))


def _with_operations(client: Client, response: MetadataResponse) -> MetadataResponse:
    described: MetadataResponse = cluster_operations(client, topic_operations(client, response))
    return described


def topic_operations(client: Client, response: Any) -> Any:  # noqa: ANN401 - of Metadata or DescribeTopicPartitions
    """Name the operations that the client may do with each topic."""
    topics = tuple(
        replace(
            row,
            topic_authorized_operations=client.operations(
                ResourceType.TOPIC, row.name or "", row.topic_authorized_operations
            ),
        )
        for row in response.topics
    )
    return replace(response, topics=topics)


def described_topics(client: Client, request: DescribeTopicPartitionsRequest) -> Refused | Admitted:
    """Name the topics of a request for all: those that the client may describe."""
    if request.topics:
        return Admitted(request)
    names = sorted(name for name in client.cluster.topics if client.can(Operation.DESCRIBE, ResourceType.TOPIC, name))
    cursor = request.cursor
    if cursor is not None and cursor.topic_name not in names:
        names, cursor = [name for name in names if name > cursor.topic_name], None
    if not names:
        return Refused(DescribeTopicPartitionsResponse())
    return Admitted(replace(request, topics=tuple(TopicRequest(name=name) for name in names), cursor=cursor))


def create_topics(client: Client, request: CreateTopicsRequest) -> Admitted:
    """Need Create of the cluster or of each topic, and DescribeConfigs of a topic for its details."""
    may_create_all = client.can(Operation.CREATE, ResourceType.CLUSTER)
    names = [row.name for row in request.topics]
    # a repeated name is refused for that
    refused = {
        name: None
        for name, times in Counter(names).items()
        if times == 1 and not may_create_all and not client.may(Operation.CREATE, ResourceType.TOPIC, name)
    }

    def complete(response: CreateTopicsResponse) -> CreateTopicsResponse:
        rows = [_without_details(client, row) for row in response.topics]
        rows += [
            CreatableTopicResult(name=name, error_code=TOPIC_REFUSED, error_message="Authorization failed.")
            for name in refused
        ]
        return replace(response, topics=tuple(rows))

    return Admitted(replace(request, topics=tuple(row for row in request.topics if row.name not in refused)), complete)


def _without_details(client: Client, row: CreatableTopicResult) -> CreatableTopicResult:
    if row.error_code or client.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, row.name):
        return row
    return replace(row, topic_config_error_code=TOPIC_REFUSED, num_partitions=-1, replication_factor=-1, configs=None)


def delete_topics(client: Client, request: DeleteTopicsRequest) -> Admitted:
    """Need Delete of the cluster or of each topic. Without Describe an unknown topic is refused, too."""
    if client.can(Operation.DELETE, ResourceType.CLUSTER):
        return Admitted(request)
    refused: list[DeletableTopicResult] = []
    allowed: list[DeleteTopicState] = []
    for row in request.topics:
        name = client.name_of(row)
        if not name or (row.name and row.topic_id != ZERO_UUID):
            allowed.append(row)
            continue
        is_described = client.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        is_known = client.cluster.topics.find(name) is not None
        if is_described and (not is_known or client.may(Operation.DELETE, ResourceType.TOPIC, name)):
            allowed.append(row)
            continue
        shown = name if is_described or row.name else None
        refused.append(
            DeletableTopicResult(
                name=shown,
                topic_id=row.topic_id,
                error_code=TOPIC_REFUSED,
                error_message=TEXTS[ResourceType.TOPIC],
            )
        )

    def complete(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        return replace(response, responses=(*response.responses, *refused))

    return Admitted(replace(request, topics=tuple(allowed)), complete)


def configs(operation: Operation, text: bool) -> Guard:  # noqa: FBT001 - a table's cell
    """Return the guard of an API of configs: each resource needs an operation of its own type."""

    def guard(client: Client, request: Any) -> Refused | Admitted:  # noqa: ANN401 - of three APIs
        refused: dict[ResourceType, list[Any]] = {}
        allowed: list[Any] = []
        release = client.cluster.settings.kafka_version
        with_zookeeper = client.cluster.features.dialect.administers_with_zookeeper
        is_alteration = operation is Operation.ALTER_CONFIGS
        unknown = {row.resource_type for row in request.resources if not configs_of(row.resource_type, release)}
        if with_zookeeper and is_alteration:
            unknown.discard(BROKER_LOGGER)
        if unknown and (with_zookeeper or not is_alteration):
            # a type without rights fails the whole request
            return Admitted(request)
        for row in request.resources:
            kind = {TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP}.get(row.resource_type, ResourceType.CLUSTER)
            name = CLUSTER_NAME if kind is ResourceType.CLUSTER else row.resource_name
            # a controller refuses the rows of such a type, and alters the others
            is_allowed = row.resource_type in unknown or client.may(operation, kind, name)
            (allowed if is_allowed else refused.setdefault(kind, [])).append(row)
        if not refused:
            return Admitted(request)
        refusals = [
            rows_refused(client, replace(request, resources=tuple(rows)), kind, TEXTS[kind] if text else "")
            for kind, rows in refused.items()
        ]

        def complete(response: Message) -> Message:
            for refusal in refusals:
                response = merged(response, refusal, request.resources, "requested")
            return response

        return Admitted(replace(request, resources=tuple(allowed)), complete)

    return guard


def epoch_ends(rows: Guard) -> Guard:
    """Return the guard of OffsetForLeaderEpoch: ClusterAction, or a right for each row."""

    def guard(client: Client, request: OffsetForLeaderEpochRequest) -> Refused | Admitted:
        if client.can(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return Admitted(request)
        return rows(client, request)

    return guard
