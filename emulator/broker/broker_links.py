"""Requests between brokers: the connections that carry them, and their responses; no I/O.

They take the path of a puppet's requests, so that faults and the trace treat them like those of any client.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Protocol

from .connections import Close

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.effects import SendRequest
    from .connections import Inbox, Output


class Links(Protocol):
    """The runtime that connects brokers."""

    def connect_in_process(self, now: int, node_id: int, client_id: str, inbox: Inbox | None = None) -> int:
        """Connect to a node; return the number of the connection."""

    def send_message(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """Send a request; its response goes to the inbox of the connection."""

    def deliver(self, now: int, node_id: int, token: int, response: Message | None) -> list[Output]:
        """Pass a response to the broker that sent the request."""


class BrokerLinks:
    """The requests between the brokers of a cluster. A connection has one request in flight; others open another."""

    def __init__(self) -> None:
        self.requests: deque[tuple[int, SendRequest]] = deque()
        """The requests to send, with the node ids of their senders."""
        self._inbox: Inbox = deque()
        self._idle: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        # by connection: sender and receiver, and the token of the request in flight
        self._in_flight: dict[int, tuple[tuple[int, int], int]] = {}
        self._is_exchanging = False

    @property
    def has_work(self) -> bool:
        """Whether a request or response waits to be delivered."""
        return bool(self.requests or self._inbox)

    def exchange(self, now: int, links: Links) -> list[Output]:
        """Deliver requests and responses until none waits; some may be parked or held at their broker."""
        outputs: list[Output] = []
        if self._is_exchanging:
            return outputs
        self._is_exchanging = True
        while self.has_work:
            while self.requests:
                sender, sent = self.requests.popleft()
                outputs += self._send(now, links, sender, sent)
            while self._inbox:
                _, item = self._inbox.popleft()
                is_closed = isinstance(item, Close)
                link, token = self._in_flight.pop(item.connection, (None, 0))
                if link is None:
                    for idle in self._idle.values():
                        if item.connection in idle:
                            idle.remove(item.connection)
                    continue
                if not is_closed:
                    self._idle[link].append(item.connection)
                outputs += links.deliver(now, link[0], token, None if isinstance(item, Close) else item.response)
        self._is_exchanging = False
        return outputs

    def _send(self, now: int, links: Links, sender: int, sent: SendRequest) -> list[Output]:
        link = (sender, sent.node_id)
        idle = self._idle[link]
        connection = (
            idle.pop() if idle else links.connect_in_process(now, sent.node_id, f"broker-{sender}", self._inbox)
        )
        self._in_flight[connection] = link, sent.token
        return links.send_message(now, connection, sent.version, sent.request)
