"""Connections of a puppet: one to look up its coordinator, one to the coordinator itself."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest

from ...broker.api_table import KEYS_SINCE
from ...core.node import GROUP

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from .puppet import PuppetClient
    from .supervisor import PuppetSupervisor

RETRY_BACKOFF_MS = 100
"""`retry.backoff.ms`."""

REQUEST_TIMEOUT_MS = 30_000
"""`request.timeout.ms`: the connection is closed after it."""

JOIN_EXTRA_MS = 5_000
"""Request timeout of JoinGroup beyond the rebalance timeout (`JOIN_GROUP_TIMEOUT_LAPSE`)."""


class PuppetConnection:
    """A puppet's connection to its coordinator. Requests are queued until the coordinator is known."""

    def __init__(self, supervisor: PuppetSupervisor, owner: PuppetClient) -> None:
        self._supervisor = supervisor
        self._owner = owner
        self.group_id = owner.group_id
        self._connection: int | None = None
        self._lookup: int | None = None
        self._in_flight: deque[Message] = deque()
        self._queued: list[Message] = []
        self._attempts = 0
        self._is_backing_off = False

    @property
    def pending_request(self) -> Message | None:
        """The oldest request in flight, or else the first queued request."""
        if self._in_flight:
            return self._in_flight[0]
        return self._queued[0] if self._queued else None

    @property
    def is_connected(self) -> bool:
        """Whether the connection to the coordinator is open."""
        return self._connection is not None

    @property
    def is_idle(self) -> bool:
        """Whether the connection is open without requests in flight or queued."""
        return self.is_connected and not self._in_flight and not self._queued

    def send(self, now: int, request: Message) -> None:
        """Send a request at once, or queue it until the coordinator is known."""
        connection = self._connection
        if connection is None or self._is_backing_off:
            self._queued.append(request)
            if not self._is_backing_off:
                self._find_coordinator(now)
            return
        self._in_flight.append(request)
        if not isinstance(request, HeartbeatRequest):
            # heartbeats have no timeout: the next heartbeats detect a missing response
            self._start_timeout(now, request)
        self._supervisor.send(now, connection, request)

    def rediscover(self, now: int) -> None:
        """Disconnect and look up the coordinator again after a backoff."""
        self._disconnect(now)
        self._start_backoff(now)

    def back_off(self, now: int) -> None:
        """Delay the next request by the retry backoff."""
        if not self._is_backing_off:
            self._start_backoff(now)

    def close(self, now: int) -> None:
        """Close all connections and discard requests in flight and queued."""
        self._disconnect(now)
        self._close_lookup(now)
        self._queued.clear()
        self._is_backing_off = False
        self._supervisor.cancel_timers(self)

    def on_response(self, now: int, connection: int, response: Message) -> None:
        """Handle a response on the coordinator's or the lookup connection."""
        if connection == self._connection:
            request = self._in_flight.popleft()
            if not (isinstance(request, HeartbeatRequest) or self._in_flight or self._is_backing_off):
                self._supervisor.cancel_timers(self)
            self._owner.on_response(now, request, response)
        else:
            assert isinstance(response, FindCoordinatorResponse)
            self._close_lookup(now)
            self._supervisor.cancel_timers(self)
            self._connect(now, response)

    def on_close(self, now: int, connection: int) -> None:
        """Handle a connection closed by the node."""
        if connection == self._lookup:
            self._lookup_failed(now)
        elif connection == self._connection:
            self._connection = None
            self._connection_lost(now)

    def timer_expired(self, now: int) -> None:
        """Handle the end of a backoff or a request timeout."""
        if self._is_backing_off:
            self._is_backing_off = False
            if self._connection is None:
                self._find_coordinator(now)
            else:
                self._send_queued(now)
        elif self._lookup is not None:
            self._close_lookup(now)
            self._lookup_failed(now)
        elif self._in_flight:
            self._connection_lost(now)

    def _find_coordinator(self, now: int) -> None:
        if self._lookup is not None:
            return
        node_id = self._supervisor.bootstrap_node(self._attempts)
        if node_id is None:
            self._start_backoff(now)
            return
        if self._supervisor.version(ApiKey.FIND_COORDINATOR) >= KEYS_SINCE:
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(self.group_id,))
        else:
            request = FindCoordinatorRequest(key_type=GROUP, key=self.group_id)
        self._lookup = self._supervisor.connect(now, node_id, self._owner.client_id, self)
        self._start_timeout(now, request)
        self._supervisor.send(now, self._lookup, request)

    def _connect(self, now: int, response: FindCoordinatorResponse) -> None:
        row = response.coordinators[0] if response.coordinators else None
        if row is None or response.error_code or row.error_code != Error.NONE:
            self._lookup_failed(now)
            return
        self._connection = self._supervisor.connect(now, row.node_id, self._owner.client_id, self)
        self._send_queued(now)

    def _lookup_failed(self, now: int) -> None:
        self._lookup = None
        self._attempts += 1
        self._start_backoff(now)

    def _send_queued(self, now: int) -> None:
        queued, self._queued = self._queued, []
        for request in queued:
            self.send(now, request)

    def _start_timeout(self, now: int, request: Message) -> None:
        timeout_ms = REQUEST_TIMEOUT_MS
        if isinstance(request, JoinGroupRequest):
            timeout_ms = max(timeout_ms, request.rebalance_timeout_ms + JOIN_EXTRA_MS)
        self._supervisor.start_timeout(now, self, timeout_ms)

    def _start_backoff(self, now: int) -> None:
        self._is_backing_off = True
        self._supervisor.start_backoff(now, self, RETRY_BACKOFF_MS)

    def _connection_lost(self, now: int) -> None:
        """Discard all requests; the owner sends again those that still matter."""
        self._disconnect(now)
        self._queued.clear()
        self._start_backoff(now)
        self._owner.on_disconnect(now)

    def _disconnect(self, now: int) -> None:
        if self._connection is not None:
            self._supervisor.disconnect(now, self._connection)
        self._connection = None
        self._in_flight.clear()

    def _close_lookup(self, now: int) -> None:
        if self._lookup is not None:
            self._supervisor.disconnect(now, self._lookup)
        self._lookup = None
