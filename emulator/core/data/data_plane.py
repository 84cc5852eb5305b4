"""The data plane: topics and records, behind the inputs every part of a node has.

`handle` and `tick` first fire everything that is due, each at its own deadline: one large step of the clock equals many
small ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest
from koordinator.wire.messages.create_topics import CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.produce import ProduceRequest, ProduceResponse
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest
from koordinator.wire.messages.update_features import UpdateFeaturesRequest
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from koordinator.wire.records import read_header

from ..dialect import dialect_of
from ..effects import CloseConnection, Effect, InternalTopicWritten, Reply, SendRequest, TransactionEnded
from ..timers import CleanLogs, EffectsDue, FetchTimeout, ProduceRetry
from . import (
    absent_features,
    acl_admin,
    administration,
    client_quotas,
    delegation_tokens,
    features,
    replica_admin,
    scram_credentials,
)
from .describe_producers import describe_producers
from .fetch import Fetches
from .list_offsets import list_offsets, offset_for_leader_epoch
from .log_cleaner import LogCleaner
from .metadata import describe_cluster, describe_topic_partitions, metadata
from .produce import failure_without_acks, produce, refuse_produce
from .record_checks import RejectedError, check_first_batches, has_first_batches
from .share.share_fetches import ShareFetches
from .topic import INTERNAL_TOPICS, TRANSACTIONS_TOPIC
from .topic_admin import not_controller
from .transactional_produce import (
    RETRIES_MAX,
    RETRY_MS,
    VERIFICATION_VERSION,
    ProduceToVerify,
    lacks_records,
    refuse_request,
    to_verify,
    transactional_batches,
    verification,
    verified,
)
from .write_markers import write_markers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.schema import Message

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Call
    from ..refusal import Refusal
    from .topic import TopicState


RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    ApiKey.METADATA: lambda cluster, _, call, request: metadata(cluster, call.listener, call.api_version, request),
    ApiKey.DESCRIBE_CLUSTER: lambda cluster, _, call, request: describe_cluster(cluster, call.listener, request),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda cluster, _, call, request: describe_topic_partitions(
        cluster, call.listener, request
    ),
    ApiKey.LIST_OFFSETS: lambda cluster, node, call, request: list_offsets(cluster, node, call.api_version, request),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda cluster, node, _, request: offset_for_leader_epoch(cluster, node, request),
    ApiKey.INIT_PRODUCER_ID: lambda cluster, _, __, request: cluster.producer_ids.init(request),
    ApiKey.DESCRIBE_PRODUCERS: lambda cluster, node, _, request: describe_producers(cluster, node, request),
    ApiKey.UPDATE_FEATURES: lambda cluster, _, call, request: features.update_features(
        cluster, call.api_version, request
    ),
    **administration.RESPONDERS,
    **client_quotas.RESPONDERS,
    **scram_credentials.RESPONDERS,
    **replica_admin.RESPONDERS,
    **acl_admin.RESPONDERS,
    **absent_features.RESPONDERS,
}
"""The APIs that park no requests of their own; called with cluster, node id, call and request."""


class DataPlane:
    """The data APIs of a node.

    `on_topics_deleted(now, names)` deletes the committed offsets of deleted topics and returns the effects of that.
    """

    serves = frozenset(
        {
            *(ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.WRITE_TXN_MARKERS, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
            *RESPONDERS,
            *delegation_tokens.RESPONDERS,
        }
    )
    """The APIs that `handle` accepts."""

    def __init__(
        self,
        now: int,
        node_id: int,
        cluster: ClusterState,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        on_topics_deleted: Callable[[int, list[str]], list[Effect]],
    ) -> None:
        self.cluster = cluster
        self.fetches = Fetches(node_id, cluster, settings, new_uuid)
        self.timers = self.fetches.timers
        self.shares = ShareFetches(node_id, cluster, self.timers)
        self._node_id = node_id
        self._dialect = dialect_of(settings)
        self._on_topics_deleted = on_topics_deleted
        self._effects: list[Effect] = []
        self._to_verify: dict[int, ProduceToVerify] = {}
        self._started_at = self._producers_checked_ms = now
        self._cleaner = LogCleaner(now, node_id, cluster, self.timers)

    def handle(self, now: int, call: Call, request: object) -> list[Effect]:
        """Serve one request; a fetch that waits is answered by a later `handle` or `tick`.

        The timers due by `now` have fired.
        """
        self._expire_producers(now)
        match request:
            case FetchRequest():
                self._effects += self.fetches.fetch(now, call, request)
            case ProduceRequest():
                self._produce(now, call, request)
            case ShareFetchRequest():
                self._effects += self.shares.fetch(now, call, request)
            case ShareAcknowledgeRequest():
                self._effects += self.shares.acknowledge(now, call, request)
            case WriteTxnMarkersRequest():
                self._written(now, call, -1, *write_markers(self.cluster, self._node_id, now, request))
            case UpdateFeaturesRequest() if not self._is_admin():
                self._effects.append(Reply(call, features.not_controller()))
            case CreateTopicsRequest() | CreatePartitionsRequest() | DeleteTopicsRequest() if not self._is_admin():
                self._effects.append(Reply(call, not_controller(request)))
            case _ if call.api_key in delegation_tokens.RESPONDERS:
                self._remove_expired_tokens(now)
                respond = delegation_tokens.RESPONDERS[call.api_key]
                self._effects.append(Reply(call, respond(self.cluster, now, call, request)))
            case _:
                self._reply(now, call, RESPONDERS[call.api_key](self.cluster, self._node_id, call, request))
        return self._drain()

    def _expire_producers(self, now: int) -> None:
        """Forget idle producers, as of the latest periodic check: a multiple of the interval since the start.

        Kafka counts from the creation of each log (`UnifiedLog.producerExpireCheck`).
        """
        settings = self.cluster.settings
        check_ms = now - (now - self._started_at) % settings.producer_id_expiration_check_interval_ms
        if check_ms > self._producers_checked_ms:
            self._producers_checked_ms = check_ms
            idle_ms = settings.producer_id_expiration_ms
            if self._dialect.producers_expire_with_transactional_ids:
                idle_ms = settings.transactional_id_expiration_ms
            for topic in self.cluster.topics.values():
                for log in topic.logs:
                    log.producers.expire(check_ms - idle_ms)

    def _remove_expired_tokens(self, now: int) -> None:
        """Remove tokens as of the latest periodic check: between two checks no request sees the difference."""
        interval_ms = self.cluster.settings.delegation_token_expiry_check_interval_ms
        delegation_tokens.remove_expired(self.cluster, now - (now - self._started_at) % interval_ms)

    def _reply(self, now: int, call: Call, response: Message) -> None:
        self._effects.append(Reply(call, response))
        if isinstance(response, DeleteTopicsResponse):
            deleted = [row.name for row in response.responses if row.name is not None and not row.error_code]
            if deleted:
                self._effects += self.fetches.leaders_changed(now)
                self.shares.partitions.leaders_changed()
                self._effects += self._on_topics_deleted(now, deleted)

    def append(self, now: int, topic: TopicState, partition: int, batch: bytes) -> list[Effect]:
        """Append a batch of the broker's own to a compacted topic, and answer fetches that waited for it.

        Raises RefusedError with KAFKA_STORAGE_ERROR if the disk fails.
        """
        self._fire_due(now)
        self.cluster.storage.append(topic, partition, read_header(batch), batch)
        if topic.logs[partition].compact_if_grown():
            self.cluster.storage.compacted(topic, partition)
        self._grown(now, [(topic.name, partition)])
        return self._drain()

    def leaders_changed(self, now: int) -> list[Effect]:
        """Answer parked fetches of partitions that this node no longer leads."""
        self._fire_due(now)
        self._cleaner.schedule(now)
        self._effects += self.fetches.leaders_changed(now)
        self.shares.partitions.leaders_changed()
        return self._drain()

    def tick(self, now: int) -> list[Effect]:
        """Fire everything due by `now`."""
        self._fire_due(now)
        return self._drain()

    def disconnected(self, now: int, connection: int) -> None:
        """Discard the parked fetches of a closed connection, and release the records of its share session."""
        self._fire_due(now)
        self.fetches.disconnected(connection)
        self._effects += self.shares.disconnected(now, connection)
        self._perform_at(now)

    def grown(self, now: int, places: Iterable[tuple[str, int]]) -> None:
        """Answer the fetches parked on topic partitions that were appended to from Python."""
        places = list(places)
        self._cleaner.written(now, {name for name, _ in places})
        self._grown(now, places)
        self._perform_at(now)

    def _perform_at(self, now: int) -> None:
        """Have a `tick` return the effects of an input that returns none."""
        if self._effects:
            self.timers.set(EffectsDue(), now)

    def _grown(self, now: int, places: list[tuple[str, int]]) -> None:
        self._effects += self.fetches.grown(now, places)
        self._effects += self.shares.grown(now, places)

    def _fire_due(self, now: int) -> None:
        while (fired := self.timers.pop_due(now)) is not None:
            due, key = fired
            if isinstance(key, ProduceRetry):
                waiting = self._to_verify.pop(key.token)
                waiting.tries += 1
                self._verify(waiting)
            elif isinstance(key, CleanLogs):
                self._clean_logs(due)
            elif isinstance(key, FetchTimeout):
                reply = self.fetches.expired(due, key)
                self._effects += [] if reply is None else [reply]
            elif not isinstance(key, EffectsDue):
                self._effects += self.shares.expired(due, key)

    def _clean_logs(self, now: int) -> None:
        for topic, partition in self._cleaner.run(now):
            self.cluster.storage.compacted(topic, partition)
        self._cleaner.schedule(now)

    def _drain(self) -> list[Effect]:
        out, self._effects = self._effects, []
        return out

    def _is_admin(self) -> bool:
        return self._dialect.any_broker_serves_admin_requests or self.cluster.brokers.controller_id == self._node_id

    def answered(self, now: int, token: int, response: Any) -> list[Effect]:  # noqa: ANN401 - of the request's API
        """Take the response of a transaction coordinator or share coordinator; None if it could not be reached."""
        self._fire_due(now)
        if self.shares.owns(token):
            self._effects += self.shares.answered(now, token, response)
            return self._drain()
        waiting = self._to_verify.pop(token, None)
        if waiting is not None:
            refusals = verified(waiting, response)
            is_early = any(each.error is Error.CONCURRENT_TRANSACTIONS for each in refusals.values())
            if is_early and waiting.tries <= RETRIES_MAX:
                # the predecessor of the transaction is being completed
                self._to_verify[token] = waiting
                self.timers.set(ProduceRetry(token), now + RETRY_MS)
            else:
                self._append(now, waiting.call, waiting.request, refusals)
        return self._drain()

    def _produce(self, now: int, call: Call, request: ProduceRequest) -> None:
        if self._dialect.produce_without_batch_closes and not has_first_batches(call.api_version, request):
            return self._effects.append(CloseConnection(call, "a partition does not begin with a complete batch"))
        if lacks_records(self.cluster, call, request):
            # `KafkaApis.handleProduceRequest` fails, and so does its error response
            return None
        try:
            check_first_batches(self.cluster, call.api_version, request)
        except RejectedError as rejected:
            return self._refuse_produce(call, request, rejected.error, rejected.message)
        batches = transactional_batches(self.cluster, call, request)
        refusal = refuse_request(self._dialect, request, batches)
        if refusal is not None:
            return self._refuse_produce(call, request, refusal.error, refusal.error_message)
        if not batches:
            return self._append(now, call, request, {})
        starting, refused = to_verify(self.cluster, self._dialect, call.api_version, batches)
        if starting:
            return self._verify(ProduceToVerify(call, request, starting, refused))
        return self._append(now, call, request, refused)

    def _refuse_produce(self, call: Call, request: ProduceRequest, error: Error, message: str | None) -> None:
        """Refuse all partitions. Kafka's answer fails at one without records (`ProduceRequest.getErrorResponse`)."""
        if all(data.records is not None for topic in request.topic_data for data in topic.partition_data):
            self._reply_to_produce(call, request.acks, refuse_produce(request, error, message))

    def _verify(self, waiting: ProduceToVerify) -> None:
        """Ask the transaction coordinator whether these batches may start their transaction here."""
        token = next(self.cluster.request_tokens)
        self._to_verify[token] = waiting
        node_id = self.cluster.coordinator_of(waiting.request.transactional_id or "", TRANSACTIONS_TOPIC)
        request = verification(waiting.call, waiting.request, waiting.batches)
        self._effects.append(SendRequest(node_id, token, VERIFICATION_VERSION, request))

    def _append(
        self, now: int, call: Call, request: ProduceRequest, refusals: Mapping[tuple[str, int], Refusal]
    ) -> None:
        response, grown = produce(self.cluster, self._node_id, now, call, request, refusals)
        self._written(now, call, request.acks, response, grown)

    def _written(
        self,
        now: int,
        call: Call,
        acks: int,
        response: ProduceResponse | WriteTxnMarkersResponse | None,
        grown: list[tuple[str, int]],
        ended: Iterable[TransactionEnded] | None = None,
    ) -> None:
        """Answer a request that has written, if there is a response; `ended` is what markers end."""
        consequences: list[InternalTopicWritten | TransactionEnded] = [
            InternalTopicWritten(name, partition) for name, partition in grown if name in INTERNAL_TOPICS
        ]
        if ended is not None:
            consequences = [*ended]
        self._cleaner.written(now, {name for name, _ in grown})
        if response is not None:
            self._reply_to_produce(call, acks, response)
        self._grown(now, grown)
        self._effects += consequences

    def _reply_to_produce(self, call: Call, acks: int, response: ProduceResponse | WriteTxnMarkersResponse) -> None:
        if acks != 0 or isinstance(response, WriteTxnMarkersResponse):
            self._effects.append(Reply(call, response))
            return
        reason = failure_without_acks(response)
        self._effects.append(Reply(call, None) if reason is None else CloseConnection(call, reason))
