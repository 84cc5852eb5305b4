"""The client quotas of a node, applied to its requests and responses.

A throttled response leaves at once and names the throttle time; then the broker mutes the connection for that time
(KIP-219). Byte rates are counted by each node, mutations by the controller for the whole cluster. Other brokers and
puppets have no principal, and no quotas. Kafka: `ClientQuotaManager`, `ControllerMutationQuotaManager`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.fetch import FetchRequest, FetchResponse
from koordinator.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

from ..core.effects import Reply
from ..core.quotas.entities import CONSUMER_BYTES, MUTATIONS, PRODUCER_BYTES, quota_of
from ..core.quotas.rates import SampledRate
from .mutation_quota import MUTATING, MutationQuota, with_refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

    from ..core.effects import Call, Effect
    from ..core.node import NodeCore
    from ..core.quotas.entities import ClientQuota
    from ..trace.events import RequestReceived

    Handler = Callable[[int, Call, Any], list[Effect]]

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

    def serve(self, now: int, call: Call, request: Any, handle: Handler) -> list[Effect]:  # noqa: ANN401 - of any API
        """Have `handle` serve a request, without what the client's quotas do not allow."""
        if isinstance(request, FetchRequest | ShareFetchRequest):
            return handle(now, call, self._limited(call, request))
        quota = self._quota(MUTATIONS, call) if isinstance(request, MUTATING) else None
        if quota is None:
            return handle(now, call, request)
        admitted, refused, throttle_ms = self._mutations.admit(now, call, request, quota)
        if throttle_ms:
            self._mutation_throttles[call.connection] = call, throttle_ms
        effects = handle(now, call, admitted)
        if not refused:
            return effects
        return [
            replace(each, response=with_refused(self._cluster, request, refused, each.response))
            if isinstance(each, Reply) and each.call is call
            else each
            for each in effects
        ]

    def throttle(
        self, now: int, received: RequestReceived, response: Message | None, size_of: Callable[[], int]
    ) -> tuple[Message | None, int]:
        """Count a request and its response; return the response, and the time in ms to mute the connection for.

        `response` is None without acks; `size_of` returns the size of its body in bytes.
        """
        call, request, ms = received.call, received.request, 0
        if call.api_key == ApiKey.PRODUCE:
            ms = self._count(now, call, PRODUCER_BYTES, received.size)
        elif isinstance(request, FetchRequest) and isinstance(response, FetchResponse) and not _is_of_follower(request):
            ms = self._throttle_fetch(now, call, size_of)
            response = self._emptied(request, response) if ms else response
        elif isinstance(response, ShareFetchResponse):
            ms = self._throttle_fetch(now, call, size_of)
            if ms:
                # its records stay locked for its member
                response = ShareFetchResponse(error_code=response.error_code, error_message=response.error_message)
        elif call.connection in self._mutation_throttles:
            of, throttle_ms = self._mutation_throttles.pop(call.connection)
            ms = throttle_ms if of is call else 0
        if ms and response is not None:
            longest: Any = max(ms, getattr(response, "throttle_time_ms", 0))
            response = replace(response, throttle_time_ms=longest)
        return response, ms

    def forget(self, connection: int) -> None:
        """Forget a connection that has closed."""
        self._mutation_throttles.pop(connection, None)

    # -- bytes -----------------------------------------------------------------------------------------------

    def _limited(self, call: Call, request: FetchRequest | ShareFetchRequest) -> FetchRequest | ShareFetchRequest:
        """Limit a fetch to the bytes that all full windows may have, so that its client is not throttled for good."""
        is_of_follower = isinstance(request, FetchRequest) and _is_of_follower(request)
        quota = None if is_of_follower else self._quota(CONSUMER_BYTES, call)
        if quota is None:
            return request
        settings = self._cluster.settings
        most = int(quota.limit * (settings.quota_window_num - 1) * settings.quota_window_size_seconds)
        return replace(request, max_bytes=min(request.max_bytes, most))

    def _throttle_fetch(self, now: int, call: Call, size_of: Callable[[], int]) -> int:
        """Return the throttle time of a fetch in ms; then its response has no records, and they do not count."""
        quota = self._quota(CONSUMER_BYTES, call)
        if quota is None:
            return 0
        size = size_of()
        ms = self._record(now, CONSUMER_BYTES, quota, size)
        if ms:
            self._rate(now, CONSUMER_BYTES, quota).record(now, -size)
        return ms

    def _emptied(self, request: FetchRequest, response: FetchResponse) -> FetchResponse:
        """Return a throttled response to a fetch: without records. What it had told, the session tells again."""
        session_id = self._node.data.fetches.sessions.take_back(request, response)
        return replace(response, session_id=session_id, responses=(), node_endpoints=())

    def _count(self, now: int, call: Call, key: str, amount: int) -> int:
        quota = self._quota(key, call)
        return 0 if quota is None else self._record(now, key, quota, amount)

    def _record(self, now: int, key: str, quota: ClientQuota, amount: int) -> int:
        rate = self._rate(now, key, quota)
        rate.record(now, amount)
        return rate.throttle_ms(now, quota.limit)

    def _quota(self, key: str, call: Call) -> ClientQuota | None:
        if not call.principal:
            return None
        return quota_of(self._clients.quotas, key, call.principal.partition(":")[2], call.client_id)

    def _rate(self, now: int, key: str, quota: ClientQuota) -> SampledRate:
        name = key, *quota.sharers
        rate = self._rates.get(name)
        if rate is None:
            if len(self._rates) >= RATES_MAX:
                self._rates = {each: kept for each, kept in self._rates.items() if not kept.is_idle(now)}
            settings = self._cluster.settings
            window_ms = settings.quota_window_size_seconds * 1000
            rate = self._rates[name] = SampledRate(settings.quota_window_num, window_ms)
        return rate


def _is_of_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0
