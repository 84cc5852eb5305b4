"""A puppet's way to its coordinator: it asks a broker who that is, connects, and does so again when it has moved."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest

from ...broker.versions.find_coordinator import KEYS_SINCE
from ...core.node import GROUP

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from .supervisor import PuppetSupervisor

RETRY_BACKOFF_MS = 100
"""How long it waits before it tries again (`retry.backoff.ms`)."""

REQUEST_TIMEOUT_MS = 30_000
"""How long it waits for an answer before it gives the connection up (`request.timeout.ms`)."""

JOIN_EXTRA_MS = 5_000
"""A JoinGroup may take so much longer than the rebalance timeout (`JOIN_GROUP_TIMEOUT_LAPSE`)."""


class Caller(Protocol):
    """Whose line it is."""

    group_id: str
    client_id: str

    def answered(self, now: int, request: Message, response: Message) -> None:
        """The coordinator has answered a request."""

    def cut_off(self, now: int) -> None:
        """The connection is gone, and with it the answers to what was asked."""


class PuppetConnection:
    """One puppet's connections. Requests that are sent while the coordinator is not known wait until it is."""

    def __init__(self, troupe: PuppetSupervisor, caller: Caller) -> None:
        self._troupe = troupe
        self._caller = caller
        self.group_id = caller.group_id
        self._connection: int | None = None
        self._asking: int | None = None
        self._unanswered: deque[Message] = deque()
        self._queued: list[Message] = []
        self._tries = 0
        self._backs_off = False
        self.node_id = -1
        """The node it takes for the coordinator; -1 if it knows none."""

    @property
    def waits_for(self) -> Message | None:
        """The request that is to be answered next, or sent first."""
        if self._unanswered:
            return self._unanswered[0]
        return self._queued[0] if self._queued else None

    @property
    def is_idle(self) -> bool:
        """Whether it is connected to a coordinator, and nothing is to be answered or sent."""
        return self._connection is not None and not self._unanswered and not self._queued

    @property
    def is_up(self) -> bool:
        """Whether it is connected to a coordinator."""
        return self._connection is not None

    def send(self, now: int, request: Message) -> None:
        """Send a request, at once or when the coordinator is known."""
        connection = self._connection
        if connection is None or self._backs_off:
            self._queued.append(request)
            if not self._backs_off:
                self._find(now)
            return
        self._unanswered.append(request)
        if not isinstance(request, HeartbeatRequest):
            # a heartbeat that is not answered is missed when the next ones are due
            self._await(now, request)
        self._troupe.ask(now, connection, request)

    def lose_coordinator(self, now: int) -> None:
        """It is not the coordinator, or does not answer: look for it anew, a little later."""
        self._disconnect(now)
        self._back_off(now)

    def pause(self, now: int) -> None:
        """Send what is sent next a little later: it was refused just now."""
        if not self._backs_off:
            self._back_off(now)

    def hang_up(self, now: int) -> None:
        """Close everything and forget what was to be sent or answered."""
        self._disconnect(now)
        self._stop_asking(now)
        self._queued.clear()
        self._backs_off = False
        self._troupe.end_wait(self)

    # -- from the troupe -------------------------------------------------------------------------------------

    def answered(self, now: int, connection: int, response: Message) -> None:
        """Something was answered on one of its connections."""
        if connection == self._connection:
            request = self._unanswered.popleft()
            if not (isinstance(request, HeartbeatRequest) or self._unanswered or self._backs_off):
                self._troupe.end_wait(self)
            self._caller.answered(now, request, response)
        else:
            assert isinstance(response, FindCoordinatorResponse)
            self._stop_asking(now)
            self._troupe.end_wait(self)
            self._found(now, response)

    def closed(self, now: int, connection: int) -> None:
        """One of its connections was closed by the node."""
        if connection == self._asking:
            self._asking = None
            self._tries += 1
            self._back_off(now)
        elif connection == self._connection:
            self._connection = None
            self._cut_off(now)

    def time_is_up(self, now: int) -> None:
        """It has waited long enough: to try again, or for an answer."""
        if self._backs_off:
            self._backs_off = False
            if self._connection is None:
                self._find(now)
            else:
                self._send_queued(now)
        elif self._asking is not None:
            number = self._asking
            self._stop_asking(now)
            self._asking = number
            self.closed(now, number)
        elif self._unanswered:
            self._cut_off(now)

    # -- inside ----------------------------------------------------------------------------------------------

    def _find(self, now: int) -> None:
        if self._asking is not None:
            return
        node_id = self._troupe.broker_to_ask(self._tries)
        if node_id is None:
            self._back_off(now)
            return
        if self._troupe.version(ApiKey.FIND_COORDINATOR) >= KEYS_SINCE:
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(self.group_id,))
        else:
            request = FindCoordinatorRequest(key_type=GROUP, key=self.group_id)
        self._asking = self._troupe.connect(now, node_id, self._caller.client_id, self)
        self._await(now, request)
        self._troupe.ask(now, self._asking, request)

    def _found(self, now: int, response: FindCoordinatorResponse) -> None:
        row = response.coordinators[0] if response.coordinators else None
        if row is None or response.error_code or row.error_code != Error.NONE:
            self._tries += 1
            self._back_off(now)
            return
        self.node_id = row.node_id
        self._connection = self._troupe.connect(now, row.node_id, self._caller.client_id, self)
        self._send_queued(now)

    def _send_queued(self, now: int) -> None:
        queued, self._queued = self._queued, []
        for request in queued:
            self.send(now, request)

    def _await(self, now: int, request: Message) -> None:
        timeout_ms = REQUEST_TIMEOUT_MS
        if isinstance(request, JoinGroupRequest):
            timeout_ms = max(timeout_ms, request.rebalance_timeout_ms + JOIN_EXTRA_MS)
        self._troupe.wait(now, self, timeout_ms)

    def _back_off(self, now: int) -> None:
        self._backs_off = True
        self._troupe.back_off(now, self, RETRY_BACKOFF_MS)

    def _cut_off(self, now: int) -> None:
        """Whatever was to be answered or sent the caller asks again, if he still wants it."""
        self._disconnect(now)
        self._queued.clear()
        self._back_off(now)
        self._caller.cut_off(now)

    def _disconnect(self, now: int) -> None:
        if self._connection is not None:
            self._troupe.hang_up(now, self._connection)
        self._connection, self.node_id = None, -1
        self._unanswered.clear()

    def _stop_asking(self, now: int) -> None:
        if self._asking is not None:
            self._troupe.hang_up(now, self._asking)
        self._asking = None
