"""The connections of a node: how they open, are muted and throttled, and close; no I/O.

A connection whose client has closed it while requests were queued is kept until they are served, as by Kafka's
`Selector`. A throttled connection is muted until its throttle time has passed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from koordinator.wire.frames import FrameBuffer

from ..core.brokers import PLAINTEXT
from ..core.timers import Timers
from ..trace.events import Connected, Disconnected
from .connections import READ_AHEAD_BYTES, Close, Connection
from .host_log import HostLog
from .quotas import Quotas
from .sasl_requests import Authentication
from .trace_recorder import TraceRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.apis import Message

    from ..config.settings import Settings
    from ..core.effects import Call, Effect
    from ..core.node import NodeCore
    from ..trace.trace import Trace
    from .authorization.authorization import Authorization
    from .connections import Inbox, Output
    from .interceptor import Interceptor

CLOSED_MAX, CLOSED_BYTES_MAX = 1_000, 100 * 1024 * 1024
"""The closed connections whose queued requests are kept until the one in flight is answered, and the bytes of those."""

TOO_MANY_CONNECTIONS = "the quota connection_creation_rate allows its address no more connections now"


class NodeConnections:
    """The connections of a node; `Broker` serves their requests.

    `log` gets a line for every connection that the broker closes.
    """

    def __init__(self, node: NodeCore, settings: Settings, trace: Trace, log: Callable[[str], None]) -> None:
        self.node = node
        self.trace = trace
        self._settings = settings
        self._log = log
        self._recorder = TraceRecorder(node, trace)
        self._connections: dict[int, Connection] = {}
        self._closed: dict[int, Connection] = {}
        """Connections closed by clients that have requests queued: they are served, as by Kafka's `Selector`."""
        self._with_output: dict[Connection, None] = {}
        self._ready: deque[Connection] = deque()
        self._serving: Connection | None = None
        self._held_back: dict[int, Connection] = {}
        self._closing: list[Close] = []
        self._host_log = HostLog(log)
        self._authentication = Authentication(
            settings, node.cluster, self._connections, self._perform, self._write_part, self._end_refused
        )
        self._authorization: Authorization | None = None
        self._quotas = Quotas(node)
        self._throttled: Timers[Connection] = Timers()
        """The ends of throttle times, in the node's time."""
        self.interceptor: Interceptor | None = None
        """The interceptor of requests and responses, if any."""

    @abstractmethod
    def _perform(self, now: int, effects: Iterable[Effect]) -> None:
        """Perform effects."""

    @abstractmethod
    def queued_requests(self, connection: int) -> list[tuple[Call, Message]]:
        """Return the decodable requests that wait behind the request in flight."""

    # -- opening and closing ----------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str, listener: str = PLAINTEXT) -> None:
        """Accept a connection to a listener; `client_host` has Java's format of an address, `/127.0.0.1`.

        One beyond the quota of its address is never served, and closed later.
        """
        peer = self._connect(connection, client_host, listener)
        refused_ms = self._quotas.refuse_connection(now, client_host) if self._quotas.are_set else 0
        if refused_ms:
            peer.is_refused = True
            self._throttled.set(peer, now + refused_ms)

    def _connect(self, connection: int, client_host: str, listener: str) -> Connection:
        frames = FrameBuffer(self._settings.socket_request_max_bytes)
        peer = self._connections[connection] = Connection(connection, client_host, listener, frames)
        self._authentication.begin(peer)
        self._recorder.note(Connected(connection, client_host))
        return peer

    def connected_in_process(self, now: int, connection: int, client_host: str, client_id: str, inbox: Inbox) -> None:
        """Accept the connection of a puppet or another broker, which uses `send_message` and the inbox."""
        del now
        peer = self._connect(connection, client_host, PLAINTEXT)
        peer.messages, peer.client_id, peer.inbox = deque(), client_id, inbox
        peer.authenticator, peer.principal = None, ""
        self._authentication.forget(connection)

    def expire_authentication(self, now: int, user: str | None) -> int:
        """End the sessions of a user, or of all users, and return their number."""
        return self._authentication.expire(now, user)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """Forget a closed connection; its members remain until their sessions expire.

        Requests queued behind the one in flight are served after it.
        """
        peer = self._connections.pop(connection, None)
        if peer is not None:
            self._held_back.pop(connection, None)
            self._authentication.forget(connection)
            if self._authorization is not None:
                self._authorization.forget(connection)
            if self.interceptor is not None:
                self.interceptor.on_disconnected(now, self, connection)
            self._quotas.forget(connection)
            waits = peer.in_flight is not None or peer.is_throttled
            if waits and next(peer.frames.complete(), None) is not None:
                self._closed[connection] = peer
                self._bound_closed(now)
            else:
                self._throttled.cancel(peer)
                self.node.data.disconnected(now, connection)
            event = Disconnected(connection, peer.client_host, peer.client_id, reason, peer.empty_fetches)
            self._recorder.note(event)

    def _bound_closed(self, now: int) -> None:
        """Drop the oldest closed connections whose queued requests take too much memory: some are never answered."""
        size = sum(len(each.frames) for each in self._closed.values())
        while size > CLOSED_BYTES_MAX or len(self._closed) > CLOSED_MAX:
            oldest = next(iter(self._closed))
            size -= len(self._closed[oldest].frames)
            self._throttled.cancel(self._closed[oldest])
            self._forget_closed(now, oldest)

    def _forget_closed(self, now: int, connection: int) -> bool:
        """Forget a closed connection after its last queued request; return whether it is closed."""
        is_closed = self._closed.pop(connection, None) is not None
        if is_closed:
            self.node.data.disconnected(now, connection)
        return is_closed

    def _close(self, now: int, peer: Connection, reason: str, repeated: str | None = None) -> None:
        """Close a connection; a `repeated` reason is one that clients repeat: it is logged once for each host."""
        reason = repeated or reason
        line = f"connection {peer.number} of {peer.shown} closed: {reason}"
        if repeated is None:
            self._log(line)
        else:
            self._host_log.tell(peer.client_host, repeated, line)
        peer.in_flight, peer.is_throttled = None, False
        self.disconnected(now, peer.number, reason)
        close = Close(peer.number, reason)
        if peer.inbox is None:
            self._closing.append(close)
        else:
            peer.inbox.append((now, close))

    def close(self, now: int, reason: str) -> list[Output]:
        """Close every connection when the node goes down."""
        outputs: list[Output] = []
        for peer in list(self._connections.values()):
            self.disconnected(now, peer.number, reason)
            if peer.inbox is None:
                outputs.append(Close(peer.number, reason))
            else:
                peer.inbox.append((now, Close(peer.number, reason)))
        self._closed.clear()
        return outputs

    # -- output and throttling --------------------------------------------------------------------------------

    def _write(self, peer: Connection, data: bytes, *, ends: bool) -> None:
        if ends:
            self._end(peer)
        peer.out.append(data)
        peer.out_bytes += len(data)
        self._with_output[peer] = None

    def _write_part(self, peer: Connection, data: bytes) -> None:
        self._write(peer, data, ends=False)

    def _end(self, peer: Connection) -> None:
        peer.in_flight = None
        peer.reason = ""
        if peer is not self._serving:
            self._ready.append(peer)

    def _mute(self, now: int, peer: Connection, ms: int) -> None:
        """Serve no further request of a connection for a throttle time."""
        peer.is_throttled = True
        self._throttled.set(peer, now + ms)

    def _end_throttle(self, now: int, peer: Connection) -> None:
        if peer.is_refused:
            self._end_refused(now, peer, TOO_MANY_CONNECTIONS)
            return
        if len(peer.frames) >= READ_AHEAD_BYTES:
            # an output has the server read from it again
            self._with_output[peer] = None
        peer.is_throttled = False
        self._ready.append(peer)

    def _end_refused(self, now: int, peer: Connection, reason: str) -> None:
        """Close a refused connection; the queue of a disconnected client is dropped."""
        self._forget_closed(now, peer.number)
        if peer.number in self._connections:
            self._close(now, peer, reason, reason)

    # -- queries ----------------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Return whether to stop reading: a request is in flight, and the read-ahead is full."""
        peer = self._connections.get(connection)
        return peer is not None and peer.is_muted

    def clients(self) -> dict[int, tuple[str, str]]:
        """Return latest client id and host of the open connections, without puppets."""
        clients = (peer for peer in self._connections.values() if peer.messages is None)
        return {peer.number: (peer.client_id, peer.client_host) for peer in clients}

    def connections(self) -> Iterable[int]:
        """Return the open connections, including puppets."""
        return self._connections.keys()

    def requests_in_flight(self) -> list[Call]:
        """Return the requests that await their response."""
        return [peer.in_flight.call for peer in self._connections.values() if peer.in_flight is not None]
