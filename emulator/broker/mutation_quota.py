"""The quota of controller mutations: partitions created and deleted per second (KIP-599).

A newer request gets THROTTLING_QUOTA_EXCEEDED for the rows that exceed it, and an older one is applied and throttled. A
row that is invalid takes no permit, so the request is validated first. Kafka: `ControllerMutationQuotaManager`,
`ReplicationControlManager`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest
from koordinator.wire.primitives import ZERO_UUID

from ..core.data.data_plane import RESPONDERS
from ..core.data.topic import INTERNAL_TOPICS
from ..core.data.topic_admin import create_error, growth
from ..core.quotas.rates import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from koordinator.wire.messages.metadata import MetadataRequest, MetadataResponse

    from ..core.cluster import ClusterState
    from ..core.data.topic import TopicState
    from ..core.effects import Call
    from ..core.node import NodeCore
    from ..core.quotas.entities import ClientQuota

STRICT_SINCE: dict[int, int] = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
"""The first version of each API whose rows are refused."""

BUCKETS_MAX = 1_000
"""The number of buckets from which full ones are forgotten: client ids are the clients' choice."""

MUTATING = (CreateTopicsRequest, CreatePartitionsRequest, DeleteTopicsRequest)
"""The requests that take permits."""

Mutation = CreateTopicsRequest | CreatePartitionsRequest | DeleteTopicsRequest
Row = Any
"""A topic to create, to extend or to delete."""


class MutationQuota:
    """Takes permits for the requests that a node gets; the buckets are the controller's, for the whole cluster."""

    def __init__(self, node: NodeCore) -> None:
        self._cluster = node.cluster
        self._node_id = node.node_id

    def admit(self, now: int, call: Call, request: Mutation, quota: ClientQuota) -> tuple[Mutation, list[Row], int]:
        """Return the request without its refused rows, these rows, and the throttle time in ms."""
        bucket, throttle_ms, refused = self._bucket(now, quota), 0, []
        is_strict = call.api_version >= STRICT_SINCE[call.api_key]
        for row, permits in self._permits(call, request):
            missing_ms = bucket.throttle_ms(now, quota.limit) if is_strict else 0
            if missing_ms:
                refused.append(row)
                throttle_ms = missing_ms
            else:
                bucket.take(now, quota.limit, permits)
        if not is_strict:
            throttle_ms = bucket.throttle_ms(now, quota.limit)
        rows: Any = tuple(row for row in request.topics if row not in refused)
        return replace(request, topics=rows) if refused else request, refused, throttle_ms

    def admit_created(
        self, now: int, call: Call, request: MetadataRequest, quota: ClientQuota
    ) -> tuple[MetadataRequest, list[str]]:
        """Take permits for the topics that Metadata creates; return the request without refused ones, and their names.

        A broker forwards the creation as CreateTopics to the controller, and does not wait for its response: the client
        hears of an unknown topic, and is not throttled. With ZooKeeper nothing is refused
        (`AutoTopicCreationManager`).
        """
        cluster = self._cluster
        if not request.allow_auto_topic_creation or not cluster.settings.auto_create_topics_enable:
            return request, []
        names = dict.fromkeys(
            row.name for row in request.topics or () if row.name and cluster.topics.find(row.name) is None
        )
        rows = tuple(
            CreatableTopic(name=name, num_partitions=_count(cluster, name), replication_factor=-1) for name in names
        )
        forwarded = replace(call, api_key=ApiKey.CREATE_TOPICS, api_version=STRICT_SINCE[ApiKey.CREATE_TOPICS])
        is_strict = not cluster.features.dialect.administers_with_zookeeper
        bucket, refused = self._bucket(now, quota), []
        for row, permits in self._permits(forwarded, CreateTopicsRequest(topics=rows)):
            if is_strict and bucket.throttle_ms(now, quota.limit):
                refused.append(row.name)
            else:
                bucket.take(now, quota.limit, permits)
        kept = tuple(row for row in request.topics or () if row.name not in refused)
        if refused and not kept:
            # no topics would be all topics in v0
            return replace(request, allow_auto_topic_creation=False), []
        return replace(request, topics=kept) if refused else request, refused

    def _permits(self, call: Call, request: Mutation) -> Iterator[tuple[Row, int]]:
        """Yield the valid rows of a request, with the number of partitions that each creates or deletes."""
        cluster, dialect = self._cluster, self._cluster.features.dialect
        if not dialect.any_broker_serves_admin_requests and cluster.brokers.controller_id != self._node_id:
            return
        if isinstance(request, DeleteTopicsRequest):
            counts = Counter(request.topics)
            for state in request.topics:
                topic = _topic_of(cluster, state)
                if topic is not None and counts[state] == 1 and cluster.settings.delete_topic_enable:
                    yield state, len(topic.logs)
            return
        if request.validate_only and dialect.administers_with_zookeeper:
            return
        validated: Any = RESPONDERS[call.api_key](cluster, self._node_id, call, replace(request, validate_only=True))
        if isinstance(request, CreateTopicsRequest):
            valid = {row.name for row in validated.topics if not row.error_code}
            for created in request.topics:
                if created.name in valid:
                    yield created, len(created.assignments) or cluster.partitions_or_default(created.num_partitions)
        else:
            valid = {row.name for row in validated.results if not row.error_code}
            for growing in request.topics:
                if growing.name in valid:
                    yield growing, growing.count - len(cluster.topics[growing.name].logs)

    def _bucket(self, now: int, quota: ClientQuota) -> TokenBucket:
        buckets, settings = self._cluster.mutation_buckets, self._cluster.settings
        bucket = buckets.get(quota.sharers)
        if bucket is None:
            if len(buckets) >= BUCKETS_MAX:
                for sharers in [each for each, kept in buckets.items() if kept.is_full(now, quota.limit)]:
                    del buckets[sharers]
            burst_s = settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
            bucket = buckets[quota.sharers] = TokenBucket(burst_s)
        return bucket


def with_refused(cluster: ClusterState, request: Mutation, refused: Sequence[Row], response: Any) -> Any:  # noqa: ANN401
    """Return a response with the refused rows of its request, in the order of the request."""
    error = Error.THROTTLING_QUOTA_EXCEEDED
    rows: list[Any] = []
    if isinstance(request, CreateTopicsRequest):
        field, rows = "topics", [create_error(row.name, error) for row in refused]
    elif isinstance(request, CreatePartitionsRequest):
        field, rows = "results", [growth(row.name, error) for row in refused]
    else:
        field = "responses"
        for topic in (_topic_of(cluster, row) for row in refused):
            assert topic is not None, "only valid rows are refused"
            rows.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error))
    requested = list(dict.fromkeys(map(_key_of, request.topics)))
    result = list(getattr(response, field))
    for row, answer in zip(refused, rows, strict=True):
        result.insert(requested.index(_key_of(row)), answer)
    return replace(response, **{field: tuple(result)})


def with_unknown(request: MetadataRequest, names: Sequence[str], response: MetadataResponse) -> MetadataResponse:
    """Return a response with these topics as unknown ones, in the order of the request."""
    requested = list(dict.fromkeys(row.name for row in request.topics or ()))
    rows = list(response.topics)
    for name in names:
        unknown = replace(
            rows[0],
            error_code=Error.UNKNOWN_TOPIC_OR_PARTITION,
            name=name,
            topic_id=ZERO_UUID,
            is_internal=name in INTERNAL_TOPICS,
            partitions=(),
        )
        rows.insert(requested.index(name), unknown)
    return replace(response, topics=tuple(rows))


def _count(cluster: ClusterState, name: str) -> int:
    """Return the number of partitions of a topic that Metadata creates; -1 for the default."""
    return len(cluster.planned_topic(name).logs) if name in INTERNAL_TOPICS else -1


def _topic_of(cluster: ClusterState, state: Row) -> TopicState | None:
    return cluster.topics.get(state.name) if state.name is not None else cluster.topics.by_id.get(state.topic_id)


def _key_of(row: Row) -> object:
    return row if row.name is None else row.name
