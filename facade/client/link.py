"""A conversation on a socket. Everything has a deadline; nothing runs in the background."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .conversation import CLIENT_ID, Conversation
from .problems import ClientError, TimedOut, Unreachable

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from .problems import Need

PIECE = 64 * 1024
"""How many bytes are received at once."""

PORT_MAX = 65_535

_M = TypeVar("_M", bound="Message")


class Address(NamedTuple):
    """Where a broker listens."""

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
        # a share of the time has a crooked number
        return f"{self.seconds:.2g} s" if self.seconds < 1 else f"{round(self.seconds, 1):g} s"

    def left(self) -> float:
        """How many seconds are left; 0 when it has passed."""
        return max(0.0, self._end - time.monotonic())

    def share(self, of: int) -> Deadline:
        """An earlier one: the first of so many equal parts of what is left."""
        return Deadline(self.left() / of)

    def pause(self, seconds: float) -> bool:
        """Sleep; False, at once, if the deadline would have passed by then."""
        if self.left() <= seconds:
            return False
        time.sleep(seconds)
        return True


class Link:
    """A connection on which the versions are settled.

    Connecting and asking raise ClientError. What was raised once will be raised again: a link that failed is
    to be closed. `deadline` may be set before a request.

    The name of a host is looked up by the system, which takes its own time.
    """

    def __init__(self, address: Address, deadline: Deadline, software_version: str, client_id: str = CLIENT_ID) -> None:
        self.address = address
        self.deadline = deadline
        self._talk = Conversation(str(address), software_version, client_id)
        self._socket = _connect(address, deadline)
        try:
            data: bytes | None = self._talk.greeting()
            while data is not None:
                data = self._talk.greeted(self._exchange(data))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        self._socket.close()

    def version(self, need: Need, newest: int | None = None) -> int:
        """The newest version in common (see Conversation.version). Raises VersionMissing."""
        return self._talk.version(need, newest)

    def ask(self, request: Message, version: int, response: type[_M]) -> _M:
        """Send a request and wait for its answer, which is a `response`."""
        answer = self._exchange(self._talk.ask(request, version))
        assert isinstance(answer, response)
        return answer

    def _exchange(self, data: bytes) -> Message:
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
            while True:
                self._socket.settimeout(self._left())
                piece = self._socket.recv(PIECE)
                if not piece:
                    raise self._talk.ended()
                answer = self._talk.received(piece)
                if answer is not None:
                    return answer
        except TimeoutError:
            raise self._late() from None
        except OSError:
            # reset, broken pipe: closed all the same
            raise self._talk.ended() from None

    def _left(self) -> float:
        # 0 would mean "do not block"
        left = self.deadline.left()
        if not left:
            raise self._late()
        return left

    def _late(self) -> ClientError:
        return TimedOut(f"{self.address}: no answer to {self._talk.awaited} within {self.deadline}")


def _connect(address: Address, deadline: Deadline) -> socket.socket:
    """Connect to the first of the host's addresses that takes it. Raises Unreachable or TimedOut."""
    if not address.host or not 0 < address.port <= PORT_MAX:
        raise Unreachable(f"{address}: cannot connect: that is no address", again=False)
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        # ValueError: a NUL, or what IDNA refuses
        raise Unreachable(f"{address}: cannot connect: {_cause(error)}", again=False) from None
    cause: OSError | None = None
    for number, (family, kind, protocol, _, where) in enumerate(found):
        left = deadline.share(len(found) - number).left()
        if not left:
            break
        try:
            return _connected(socket.socket(family, kind, protocol), where, left)
        except OSError as error:
            cause = error
    if cause is None or isinstance(cause, TimeoutError):
        raise TimedOut(f"{address}: cannot connect within {deadline}")
    raise Unreachable(f"{address}: cannot connect: {_cause(cause)}", again=isinstance(cause, ConnectionError))


def _connected(connection: socket.socket, where: Any, timeout_s: float) -> socket.socket:  # noqa: ANN401 - as it came
    try:
        connection.settimeout(timeout_s)
        connection.connect(where)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
