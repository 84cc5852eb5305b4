"""Metadata, DescribeCluster and DescribeTopicPartitions.

A topic that a Metadata request creates is not in its response, as in Kafka, which creates it in the background: the
first response has an error, the next one the topic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from koordinator.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from koordinator.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.values import value

from ..acls.acl import NO_OPERATIONS
from ..dialect import dialect_of
from ..java.hash_order import scala_mutable_order
from ..refusal import RefusedError
from .topic import INTERNAL_TOPICS, NO_LEADER, TopicState, illegal_name
from .topic_rules import created_together

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from ..cluster import ClusterState

LOOKUP_BY_ID_SINCE = 12
"""The first version that looks up topics by id; 10 and 11 have the field and refuse it (KIP-516)."""

LISTENER_NOT_FOUND_SINCE = 6
"""The first version whose clients know LISTENER_NOT_FOUND."""

UNREACHABLE_REPLICAS_SINCE = 1
"""The first version that lists unreachable replicas; before, their partition has REPLICA_NOT_AVAILABLE."""


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


# without an authorizer every operation is allowed (`AclEntry.supportedOperations`)
TOPIC_OPERATIONS = _bits(3, 4, 5, 6, 7, 8, 10, 11)
"""read, write, create, delete, alter, describe, describe configs, alter configs."""

CLUSTER_OPERATIONS = _bits(5, 7, 8, 9, 10, 11, 12)
"""create, alter, describe, cluster action, describe configs, alter configs, idempotent write."""

PARTITIONS_PER_ANSWER = 2000
"""The limit of partitions in one DescribeTopicPartitions response (`max.request.partition.size.limit`)."""

FAILURES = (Error.UNKNOWN_SERVER_ERROR, Error.INVALID_REQUEST)
"""The errors of topics that fail the whole request: the response names no broker."""

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types of DescribeCluster."""


def metadata(cluster: ClusterState, listener: str, version: int, request: MetadataRequest) -> MetadataResponse:
    """Return brokers and topics (None: all topics); create missing topics if request and broker allow it.

    The response has the brokers that are up and have the client's listener.
    """
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NO_OPERATIONS
    view = _TopicView(cluster, listener, version, operations)
    if request.topics is None:
        topics = [view.topic(topic) for topic in cluster.topics.values()]
    else:
        topics = _requested_topics(view, request, request.topics)
        failure = next((row.error_code for row in topics if row.error_code in FAILURES), None)
        if failure is not None:
            return MetadataResponse(
                topics=tuple(topics), cluster_authorized_operations=NO_OPERATIONS, error_code=failure
            )
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=broker.node_id, host=at.host, port=at.port, rack=broker.rack)
            for broker, at in cluster.brokers.reachable(listener)
        ),
        cluster_id=cluster.cluster_id,
        controller_id=cluster.brokers.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def _requested_topics(
    view: _TopicView, request: MetadataRequest, requested: Iterable[MetadataRequestTopic]
) -> list[MetadataResponseTopic]:
    """Return each topic once. If any is named by id, those named otherwise are ignored, as in Kafka."""
    ids = dict.fromkeys(each.topic_id for each in requested if each.topic_id != ZERO_UUID)
    names = dict.fromkeys(each.name for each in requested)
    if (ids or None in names) and view.version < LOOKUP_BY_ID_SINCE:
        return [_refused(Error.INVALID_REQUEST, each.name or "", each.topic_id) for each in requested]
    if ids:
        existing = {topic_id: view.cluster.topics.find_id(topic_id) for topic_id in ids}
        return [
            view.topic(topic) if topic else _refused(Error.UNKNOWN_TOPIC_ID, None, topic_id)
            for topic_id, topic in existing.items()
        ]
    if None in names:
        return [_refused(Error.UNKNOWN_SERVER_ERROR, each.name or "", each.topic_id) for each in requested]
    may_create = request.allow_auto_topic_creation and view.cluster.settings.auto_create_topics_enable
    together = created_together(view.cluster, [name for name in names if name])
    rows = {name: _named_topic(view, name, together, may_create=may_create) for name in _in_order(view.cluster, names)}
    return [rows[name or ""] for name in names]


def _in_order(cluster: ClusterState, names: Iterable[str | None]) -> list[str]:
    """Return the topics of a request in the order in which they are created: of two that collide one is refused."""
    existing = [name for name in names if name is not None and cluster.topics.find(name) is not None]
    others = [name for name in names if name is not None and cluster.topics.find(name) is None]
    # the topics that may be created are in a map (`AutoTopicCreationManager`)
    return existing + (scala_mutable_order(others) if cluster.features.dialect.administers_with_zookeeper else others)


def _named_topic(view: _TopicView, name: str, together: Collection[str], *, may_create: bool) -> MetadataResponseTopic:
    cluster = view.cluster
    existing = cluster.topics.find(name)
    if existing is not None:
        return view.topic(existing)
    error = Error.INVALID_TOPIC_EXCEPTION if illegal_name(name) else Error.UNKNOWN_TOPIC_OR_PARTITION
    if may_create and error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        created = dialect_of(cluster.settings).auto_created_topic_error
        try:
            cluster.auto_create_topic(name, together)
        except RefusedError as refused:
            # a broker with ZooKeeper knows at once what others hear from the controller
            if created is not error:
                error = created if refused.error is Error.TOPIC_ALREADY_EXISTS else refused.error
        else:
            error = created
    row = _refused(error, name, ZERO_UUID)
    return replace(row, topic_authorized_operations=view.operations)


def _refused(error: Error, name: str | None, topic_id: UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS)


@value
class _TopicView:
    """The view of topics that one client gets, in a version of Metadata."""

    cluster: ClusterState
    listener: str
    version: int
    operations: int

    def topic(self, topic: TopicState) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=tuple(
                self._partition(topic, each) for each in range(len(topic.logs)) if each not in topic.unknown
            ),
            topic_authorized_operations=self.operations,
        )

    def _partition(self, topic: TopicState, partition: int) -> MetadataResponsePartition:
        cluster, leader = self.cluster, topic.leaders[partition]
        knows_the_listener = self.version >= LISTENER_NOT_FOUND_SINCE
        error = _leader_error(cluster, self.listener, leader, since_listener_not_found=knows_the_listener)
        replicas = topic.replicas[partition]
        in_sync = cluster.brokers.up(replicas)
        offline = cluster.brokers.unreachable(replicas, self.listener)
        if offline and self.version < UNREACHABLE_REPLICAS_SINCE:
            error = error or Error.REPLICA_NOT_AVAILABLE
            replicas, in_sync = (tuple(each for each in ids if each not in offline) for ids in (replicas, in_sync))
        return MetadataResponsePartition(
            error_code=error,
            partition_index=partition,
            leader_id=leader if cluster.brokers.endpoint(leader, self.listener) else NO_LEADER,
            leader_epoch=topic.epochs[partition],
            replica_nodes=replicas,
            isr_nodes=in_sync,
            offline_replicas=offline,
        )


def _leader_error(cluster: ClusterState, listener: str, leader: int, *, since_listener_not_found: bool) -> Error:
    """Return why a client cannot reach the leader of a partition, or NONE (`getPartitionMetadata`)."""
    if cluster.brokers.endpoint(leader, listener) is not None:
        return Error.NONE
    if leader != NO_LEADER and since_listener_not_found:
        return Error.LISTENER_NOT_FOUND
    return Error.LEADER_NOT_AVAILABLE


def describe_cluster(cluster: ClusterState, listener: str, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Return the brokers; a request for controllers gets 114, any other endpoint type 115 (KIP-919)."""
    if request.endpoint_type != BROKERS:
        error, message = Error.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        if request.endpoint_type == CONTROLLERS:
            error = Error.MISMATCHED_ENDPOINT_TYPE
            message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return DescribeClusterResponse(error_code=error, error_message=message)
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.brokers.controller_id,
        brokers=tuple(
            DescribeClusterBroker(broker_id=broker.node_id, host=at.host, port=at.port, rack=broker.rack)
            for broker, at in cluster.brokers.reachable(listener)
        ),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def describe_topic_partitions(
    cluster: ClusterState, listener: str, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return topics in the order of their names, in pages (KIP-966); all if none is named.

    Topics before the cursor are not looked at. A cursor at a topic that is not named, or with a negative partition, is
    refused (42 in each row); so is an empty name (-1).
    """
    cursor = request.cursor
    begin = cursor.topic_name if cursor is not None else ""
    named = {requested.name for requested in request.topics} or set(cluster.topics)
    names = {name for name in named if name >= begin}
    error = Error.UNKNOWN_SERVER_ERROR if "" in names else Error.NONE
    if cursor is not None and (cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names)):
        error = Error.INVALID_REQUEST
    if error is not Error.NONE:
        return DescribeTopicPartitionsResponse(
            topics=tuple(
                DescribeTopicPartitionsResponseTopic(error_code=error, name=name)
                for name in [each.name for each in request.topics] or sorted(named)
            )
        )
    left = min(max(1, request.response_partition_limit), PARTITIONS_PER_ANSWER)
    described: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name in sorted(names):
        if left == 0:
            next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = cluster.topics.find(name)
        if topic is None:
            error = Error.INVALID_TOPIC_EXCEPTION if illegal_name(name) else Error.UNKNOWN_TOPIC_OR_PARTITION
            described.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=error, name=name, topic_authorized_operations=TOPIC_OPERATIONS
                )
            )
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        page = range(first, min(first + left, len(topic.logs)))
        described.append(_described(cluster, listener, topic, page))
        left -= len(page)
        if page.stop < len(topic.logs):
            next_cursor = Cursor(topic_name=name, partition_index=page.stop)
            break
    return DescribeTopicPartitionsResponse(topics=tuple(described), next_cursor=next_cursor)


def _described(
    cluster: ClusterState, listener: str, topic: TopicState, page: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                error_code=_leader_error(cluster, listener, leader, since_listener_not_found=True),
                partition_index=partition,
                leader_id=leader if cluster.brokers.endpoint(leader, listener) else NO_LEADER,
                leader_epoch=topic.epochs[partition],
                replica_nodes=topic.replicas[partition],
                isr_nodes=cluster.brokers.up(topic.replicas[partition]),
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=cluster.brokers.unreachable(topic.replicas[partition], listener),
            )
            for partition, leader in zip(page, topic.leaders[page.start : page.stop], strict=True)
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
