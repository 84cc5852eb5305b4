"""A ShareFetch or ShareAcknowledge until it is answered, and its answer (`KafkaApis`)."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.errors import Error
from koordinator.wire.messages import share_acknowledge as acknowledging
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from koordinator.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from koordinator.wire.values import mutable

from ...timers import ShareFetchTimeout
from ..leader_hints import LeaderHints
from .acknowledgements import RENEWALS_SINCE
from .sessions import OPENS
from .settings import ShareSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest

    from ...cluster import ClusterState
    from ...effects import Call
    from ...refusal import Refusal
    from .sessions import PartitionKey, SessionKey, ShareSession
    from .state_requests import LedPartition

T = TypeVar("T")


@mutable
class ShareExchange:
    """A request until it is answered: the results of its acknowledgements, and the tokens of writes they wait for.

    `rows` are those of the fetch, None while it waits. `epoch` is the one that the session has when it is answered.
    """

    call: Call
    request: ShareFetchRequest | ShareAcknowledgeRequest
    key: SessionKey
    session: ShareSession | None = None
    epoch: int = 0
    rows: dict[PartitionKey, fetching.PartitionData] | None = None
    results: dict[PartitionKey, Refusal | None] = field(default_factory=dict)
    writing: set[int] = field(default_factory=set)

    @property
    def group_id(self) -> str:
        """The group."""
        return self.key[0]

    @property
    def is_done(self) -> bool:
        """Whether the records are acquired and all changes are written."""
        return not self.writing and not (self.rows is None and isinstance(self.request, ShareFetchRequest))


@mutable
class WaitingFetch:
    """A fetch that waits for records of its partitions, in reading order; `failed` are the rows of others.

    Without partitions it only waits for the time of its refusal, as there is no room for its session.
    """

    exchange: ShareExchange
    request: ShareFetchRequest
    partitions: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    failed: dict[PartitionKey, fetching.PartitionData] = field(default_factory=dict)
    bytes_max: int = 0

    @property
    def timeout(self) -> ShareFetchTimeout:
        """The key of its timer."""
        return ShareFetchTimeout(self.exchange.call.connection, self.exchange.call.correlation_id)


def empty_row(partition: int, error: Error = Error.NONE) -> fetching.PartitionData:
    """Return a row without records, which are empty and not null."""
    return fetching.PartitionData(partition_index=partition, error_code=error, records=b"")


def fetch_response(cluster: ClusterState, exchange: ShareExchange) -> ShareFetchResponse:
    """Return the answer to a fetch that is done.

    Another request of the session makes it INVALID_SHARE_SESSION_EPOCH, an unknown topic UNKNOWN_SERVER_ERROR
    in a release that fails without its name.
    """
    rows, error, epoch = exchange.rows or {}, Error.NONE, exchange.request.share_session_epoch
    if epoch > OPENS and exchange.session is not None:
        if exchange.session.epoch == exchange.epoch:
            rows = exchange.session.take_news(rows)
        else:
            rows, error = {}, Error.INVALID_SHARE_SESSION_EPOCH
    is_nameless = any(cluster.topics.find_id(topic_id) is None for topic_id, _ in rows)
    if is_nameless and cluster.features.dialect.share_fetches_fail_without_topic_names:
        return ShareFetchResponse(error_code=Error.UNKNOWN_SERVER_ERROR)
    hints = LeaderHints(cluster, exchange.call.listener)
    rows = {key: _with_leader(cluster, hints, key, row) for key, row in rows.items()}
    for key, refusal in exchange.results.items():
        row = rows.get(key) or empty_row(key[1])
        if refusal is not None:
            message = refusal.error_message
            row = replace(row, acknowledge_error_code=refusal.error, acknowledge_error_message=message)
        rows[key] = row
    responses = tuple(
        fetching.ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in _by_topic(rows).items()
    )
    return ShareFetchResponse(
        error_code=error,
        acquisition_lock_timeout_ms=ShareSettings(cluster, exchange.group_id).record_lock_duration_ms,
        responses=responses,
        node_endpoints=hints.nodes(),
    )


def _with_leader(
    cluster: ClusterState, hints: LeaderHints, key: PartitionKey, row: fetching.PartitionData
) -> fetching.PartitionData:
    """Add the current leader to a row that another broker would serve."""
    topic = cluster.topics.find_id(key[0])
    if topic is None or row.error_code != Error.NOT_LEADER_OR_FOLLOWER:
        return row
    hint = hints.leader(topic, key[1])
    leader = fetching.LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    return replace(row, current_leader=leader)


def acknowledge_response(cluster: ClusterState, exchange: ShareExchange) -> ShareAcknowledgeResponse:
    """Return the answer to acknowledgements that are done."""
    hints = LeaderHints(cluster, exchange.call.listener)
    rows: dict[PartitionKey, acknowledging.PartitionData] = {}
    for key, refusal in exchange.results.items():
        rows[key] = row = acknowledging.PartitionData(partition_index=key[1])
        if refusal is None:
            continue
        rows[key] = row = replace(row, error_code=refusal.error, error_message=refusal.error_message)
        topic = cluster.topics.find_id(key[0])
        if topic is not None and refusal.error is Error.NOT_LEADER_OR_FOLLOWER:
            hint = hints.leader(topic, key[1])
            leader = fetching.LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
            rows[key] = replace(row, current_leader=leader)
    renews = exchange.call.api_version >= RENEWALS_SINCE
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=ShareSettings(cluster, exchange.group_id).record_lock_duration_ms if renews else 0,
        responses=tuple(
            acknowledging.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in _by_topic(rows).items()
        ),
        node_endpoints=hints.nodes(),
    )


def _by_topic(rows: Mapping[PartitionKey, T]) -> dict[UUID, list[T]]:
    """Return rows by topic."""
    topics: dict[UUID, list[T]] = {}
    for (topic_id, _), row in rows.items():
        topics.setdefault(topic_id, []).append(row)
    return topics
