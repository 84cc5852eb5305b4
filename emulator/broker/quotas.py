"""The client quotas of a node, applied to its requests and responses.

A throttled response leaves at once and names the throttle time; then the broker mutes the connection for that time
(KIP-219). Byte rates are counted by each node, mutations by the controller for the whole cluster. Other brokers and
puppets have no principal, and no quotas. Kafka: `ClientQuotaManager`, `ClientRequestQuotaManager`,
`ControllerMutationQuotaManager`, `ConnectionQuotas`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.fetch import FetchRequest, FetchResponse
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest

from ..config.value_rules import LONG_MAX
from ..core.effects import Reply
from ..core.quotas.entities import (
    CONNECTIONS,
    CONSUMER_BYTES,
    MUTATIONS,
    PRODUCER_BYTES,
    REQUEST_PERCENTAGE,
    ClientQuota,
    connection_quota_of,
    quota_of,
)
from ..core.quotas.rates import SampledRate
from .mutation_quota import MUTATING, MutationQuota, with_refused, with_unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

    from ..core.cluster import ClusterState
    from ..core.effects import Call, Effect
    from ..core.node import NodeCore
    from ..trace.events import RequestReceived

    Handler = Callable[[int, Call, Any], list[Effect]]

MS, US = 1_000, 1_000_000
"""Of a second."""

RATES_MAX = 1_000
"""The number of rates from which idle ones are forgotten: client ids are the clients' choice."""


class Quotas:
    """Counts what clients send, fetch and change, and decides how long they are throttled."""

    def __init__(self, node: NodeCore) -> None:
        self._node = node
        self._cluster = node.cluster
        self._clients = node.cluster.clients
        self._rates: dict[tuple[str, str, str], SampledRate] = {}
        self._mutations = MutationQuota(node)
        self._mutation_throttles: dict[int, tuple[Call, int]] = {}
        self._defaults = _defaults(node.cluster)

    @property
    def are_set(self) -> bool:
        """Whether any client has a quota."""
        return bool(self._clients.quotas or self._defaults)

    def serve(self, now: int, call: Call, request: Any, handle: Handler) -> list[Effect]:  # noqa: ANN401 - of any API
        """Have `handle` serve a request, without what the client's quotas do not allow."""
        if isinstance(request, FetchRequest | ShareFetchRequest):
            return handle(now, call, self._limited(call, request))
        quota = self._quota(MUTATIONS, call) if isinstance(request, (*MUTATING, MetadataRequest)) else None
        if quota is None:
            return handle(now, call, request)
        if isinstance(request, MetadataRequest):
            creating, unknown = self._mutations.admit_created(now, call, request, quota)
            return _with_rows(
                handle(now, call, creating), call, lambda response: with_unknown(request, unknown, response)
            )
        admitted, refused, throttle_ms = self._mutations.admit(now, call, request, quota)
        if throttle_ms:
            self._mutation_throttles[call.connection] = call, throttle_ms
        effects = handle(now, call, admitted)
        if not refused:
            return effects
        return _with_rows(effects, call, lambda response: with_refused(self._cluster, request, refused, response))

    def throttle(
        self, now: int, received: RequestReceived, response: Message | None, size_of: Callable[[], int]
    ) -> tuple[Message | None, int]:
        """Count a request and its response; return the response, and the time in ms to mute the connection for.

        `response` is None without acks; `size_of` returns the size of its body in bytes.
        """
        call, request = received.call, received.request
        ms = 0 if response is None or _is_exempt(request) else self._count_thread_time(now, call)
        if call.api_key == ApiKey.PRODUCE:
            ms = max(ms, self._count(now, call, PRODUCER_BYTES, received.size))
        elif isinstance(response, FetchResponse | ShareFetchResponse) and not _is_of_follower(request):
            ms, response = self._throttle_fetch(now, call, request, response, size_of, ms)
        elif call.connection in self._mutation_throttles:
            of, throttle_ms = self._mutation_throttles.pop(call.connection)
            ms = max(ms, throttle_ms if of is call else 0)
        own_ms = getattr(response, "throttle_time_ms", None)
        if ms and response is not None and own_ms is not None:
            longest: Any = max(ms, own_ms)
            response = replace(response, throttle_time_ms=longest)
        return response, ms

    def _throttle_fetch(
        self,
        now: int,
        call: Call,
        request: Any,  # noqa: ANN401 - a Fetch or ShareFetch
        response: FetchResponse | ShareFetchResponse,
        size_of: Callable[[], int],
        ms: int,
    ) -> tuple[int, FetchResponse | ShareFetchResponse]:
        """Return the throttle time, and with one a response without records, whose bytes do not count."""
        quota = self._quota(CONSUMER_BYTES, call)
        size = 0 if quota is None else size_of()
        if quota is not None:
            ms = max(ms, self._record(now, CONSUMER_BYTES, quota, size))
        if not ms:
            return 0, response
        if quota is not None:
            self._rate(now, CONSUMER_BYTES, quota).record(now, -size)
        if isinstance(response, FetchResponse):
            return ms, self._emptied(request, response)
        # the records stay locked for the member
        return ms, ShareFetchResponse(error_code=response.error_code, error_message=response.error_message)

    def _count_thread_time(self, now: int, call: Call) -> int:
        """Count the time that a request takes of a thread; return the throttle time, one window at most.

        It is the same for each request, so that throttle times repeat (`ClientRequestQuotaManager`).
        """
        settings = self._cluster.settings
        percentage = settings.request_thread_time_us / US * 100
        return min(self._count(now, call, REQUEST_PERCENTAGE, percentage), settings.quota_window_size_seconds * MS)

    def refuse_connection(self, now: int, address: str) -> int:
        """Count a new connection of an IP address; return 0, or the time after which to close it, one window at most.

        A refused connection does not count (`ConnectionQuotas.recordIpConnectionMaybeThrottle`).
        """
        limit = connection_quota_of(self._clients.quotas, address)
        if limit is None:
            return 0
        window_ms = self._cluster.settings.quota_window_size_seconds * MS
        if limit <= 0:
            return window_ms
        quota = ClientQuota(limit, address, "")
        ms = self._record(now, CONNECTIONS, quota, 1)
        if ms:
            self._rate(now, CONNECTIONS, quota).record(now, -1)
        return min(ms, window_ms)

    def forget(self, connection: int) -> None:
        """Forget a connection that has closed."""
        self._mutation_throttles.pop(connection, None)

    # -- bytes -----------------------------------------------------------------------------------------------

    def _limited(self, call: Call, request: FetchRequest | ShareFetchRequest) -> FetchRequest | ShareFetchRequest:
        """Limit a fetch to the bytes that all full windows may have, so that its client is not throttled for good."""
        quota = None if _is_of_follower(request) else self._quota(CONSUMER_BYTES, call)
        if quota is None:
            return request
        settings = self._cluster.settings
        most = int(quota.limit * (settings.quota_window_num - 1) * settings.quota_window_size_seconds)
        return replace(request, max_bytes=min(request.max_bytes, most))

    def _emptied(self, request: FetchRequest, response: FetchResponse) -> FetchResponse:
        """Return a throttled response to a fetch: without records. What it had told, the session tells again."""
        session_id = self._node.data.fetches.sessions.take_back(request, response)
        return replace(response, session_id=session_id, responses=(), node_endpoints=())

    def _count(self, now: int, call: Call, key: str, amount: float) -> int:
        quota = self._quota(key, call)
        return 0 if quota is None else self._record(now, key, quota, amount)

    def _record(self, now: int, key: str, quota: ClientQuota, amount: float) -> int:
        rate = self._rate(now, key, quota)
        rate.record(now, amount)
        return rate.throttle_ms(now, quota.limit)

    def _quota(self, key: str, call: Call) -> ClientQuota | None:
        if not call.principal:
            return None
        quota = quota_of(self._clients.quotas, key, call.principal.partition(":")[2], call.client_id)
        if quota is None and key in self._defaults and call.client_id:
            return ClientQuota(self._defaults[key], "", call.client_id)
        return quota

    def _rate(self, now: int, key: str, quota: ClientQuota) -> SampledRate:
        name = key, *quota.sharers
        rate = self._rates.get(name)
        if rate is None:
            if len(self._rates) >= RATES_MAX:
                self._rates = {each: kept for each, kept in self._rates.items() if not kept.is_idle(now)}
            settings = self._cluster.settings
            window_ms = settings.quota_window_size_seconds * MS
            rate = self._rates[name] = SampledRate(settings.quota_window_num, window_ms)
        return rate


def _defaults(cluster: ClusterState) -> dict[str, float]:
    """Return the quotas of each client id that no quota limits (`ClientQuotaManager.staticConfigClientIdQuota`)."""
    settings = cluster.settings
    limits = {PRODUCER_BYTES: settings.quota_producer_default, CONSUMER_BYTES: settings.quota_consumer_default}
    is_limited = cluster.features.dialect.has_default_quotas
    return {key: limit for key, limit in limits.items() if is_limited and limit < LONG_MAX}


def _with_rows(effects: list[Effect], call: Call, complete: Callable[[Any], Any]) -> list[Effect]:
    """Complete the response to a call."""
    return [
        replace(each, response=complete(each.response)) if isinstance(each, Reply) and each.call is call else each
        for each in effects
    ]


def _is_of_follower(request: Any) -> bool:  # noqa: ANN401 - of any API
    return isinstance(request, FetchRequest) and request.replica_id >= 0


def _is_exempt(request: Any) -> bool:  # noqa: ANN401 - of any API
    """Return whether the time of a request is not counted: those of brokers, and authentication."""
    return isinstance(request, WriteTxnMarkersRequest | SaslHandshakeRequest | SaslAuthenticateRequest) or (
        _is_of_follower(request)
    )
