"""A connection to a broker. Every operation has a deadline; nothing runs in the background."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .errors import ClientError, TimedOut, Unreachable
from .protocol import CLIENT_ID, HTTP, ClientProtocol
from .security import PLAINTEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

    from .errors import RequiredVersion
    from .security import ConnectionSecurity

READ_BYTES = 64 * 1024

PORT_MAX = 65_535

SILENCE_S = 3.0
"""The time without a response to the first request after which a server of HTTP is looked for."""

HTTP_REQUEST, HTTP_S = b"GET / HTTP/1.0\r\n\r\n", 1.0
"""What such a server answers, and the longest time for that. Some wait for a line of text, and never answer a frame."""

_M = TypeVar("_M", bound="Message")


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Deadline:
    """A point in time, `seconds` from now on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def __str__(self) -> str:
        # a share of the time has many decimals
        return f"{self.seconds:.2g} s" if self.seconds < 1 else f"{round(self.seconds, 1):g} s"

    def left(self) -> float:
        """Return the seconds that are left; 0 after the deadline."""
        return max(0.0, self._end - time.monotonic())

    def share(self, parts: int) -> Deadline:
        """Return an earlier deadline: the first of `parts` equal parts of the time that is left."""
        return Deadline(self.left() / parts)

    def pause(self, seconds: float) -> bool:
        """Sleep and return True; return False at once if the deadline would pass meanwhile."""
        if self.left() <= seconds:
            return False
        time.sleep(seconds)
        return True


class BrokerConnection:
    """A connection with negotiated versions.

    Connecting and sending raise ClientError; after an error the connection must be closed. `deadline` may be set
    before each request. The system resolves host names, without a deadline.
    """

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        software_version: str,
        client_id: str = CLIENT_ID,
        security: ConnectionSecurity = PLAINTEXT,
    ) -> None:
        self.address = address
        self.deadline = deadline
        self._protocol = ClientProtocol(str(address), software_version, client_id)
        self._socket = _connect(address, deadline)
        try:
            self._secure(security)
            data: bytes | None = self._protocol.start()
            while data is not None:
                data = self._protocol.negotiate(self._exchange(data, self._look_for_http))
            security.authenticate(self)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._socket.close()

    def version(self, required: RequiredVersion, newest: int | None = None) -> int:
        """Return the newest common version (see ClientProtocol.version). Raises NoCommonVersion."""
        return self._protocol.version(required, newest)

    def send(self, request: Message, version: int, response: type[_M]) -> _M:
        """Send a request, wait for its response and return it."""
        message = self._exchange(self._protocol.encode_request(request, version))
        assert isinstance(message, response)
        return message

    def _secure(self, security: ConnectionSecurity) -> None:
        try:
            self._socket.settimeout(self._time_left())
            self._socket = security.secured(self._socket, self.address.host, str(self.address))
        except TimeoutError:
            raise TimedOut(f"{self.address}: no TLS handshake within {self.deadline}") from None

    def _exchange(self, data: bytes, if_silent: Callable[[], None] | None = None) -> Message:
        try:
            self._socket.settimeout(self._time_left())
            self._socket.sendall(data)
            while True:
                received = self._receive(if_silent)
                if_silent = None
                if not received:
                    raise self._protocol.connection_closed()
                response = self._protocol.receive_data(received)
                if response is not None:
                    return response
        except TimeoutError:
            raise self._timed_out() from None
        except OSError:
            # a reset or a broken pipe also closes the connection
            raise self._protocol.connection_closed() from None

    def _receive(self, if_silent: Callable[[], None] | None) -> bytes:
        """Return the next bytes; `if_silent` is called once if none come for some seconds."""
        if if_silent is not None:
            self._socket.settimeout(min(SILENCE_S, self._time_left()))
            with suppress(TimeoutError):
                return self._socket.recv(READ_BYTES)
            if_silent()
        self._socket.settimeout(self._time_left())
        return self._socket.recv(READ_BYTES)

    def _look_for_http(self) -> None:
        """Raise InvalidResponse if a server of HTTP answers at this address."""
        try:
            with _connect(self.address, Deadline(min(HTTP_S, self._time_left()))) as other:
                other.settimeout(HTTP_S)
                other.sendall(HTTP_REQUEST)
                answer = other.recv(READ_BYTES)
        except (OSError, ClientError):
            return
        if answer.startswith(HTTP):
            raise self._protocol.speaks_http()

    def _time_left(self) -> float:
        # a timeout of 0 would mean "do not block"
        left = self.deadline.left()
        if not left:
            raise self._timed_out()
        return left

    def _timed_out(self) -> ClientError:
        return TimedOut(f"{self.address}: no response to {self._protocol.in_flight} within {self.deadline}")


def _connect(address: Address, deadline: Deadline) -> socket.socket:
    """Connect to the first of the host's addresses that accepts. Raises Unreachable or TimedOut."""
    if not address.host or not 0 < address.port <= PORT_MAX:
        raise Unreachable(f"{address}: cannot connect: not an address", retriable=False)
    try:
        candidates = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        # ValueError: a NUL, or a name that IDNA refuses
        raise Unreachable(f"{address}: cannot connect: {_cause(error)}", retriable=False) from None
    cause: OSError | None = None
    for number, (family, kind, protocol, _, socket_address) in enumerate(candidates):
        left = deadline.share(len(candidates) - number).left()
        if not left:
            break
        try:
            return _connect_socket(socket.socket(family, kind, protocol), socket_address, left)
        except OSError as error:
            cause = error
    if cause is None or isinstance(cause, TimeoutError):
        raise TimedOut(f"{address}: cannot connect within {deadline}")
    raise Unreachable(f"{address}: cannot connect: {_cause(cause)}", retriable=isinstance(cause, ConnectionError))


def _connect_socket(connection: socket.socket, address: Any, timeout_s: float) -> socket.socket:  # noqa: ANN401 - by family
    try:
        connection.settimeout(timeout_s)
        connection.connect(address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
