"""Connections of a node, and the outputs of a broker."""

from __future__ import annotations

from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.values import mutable, value

from ..core.acls.acl import ANONYMOUS
from ..core.effects import Call

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.frames import FrameBuffer

    from ..trace.events import RequestReceived
    from .authentication.authenticator import Authenticator

RESPONSES_PER_TURN = 32
RESPONSE_BYTES_PER_TURN = 256 * 1024
"""A connection's turn ends with the response that reaches one of these limits."""

READ_AHEAD_BYTES = 64 * 1024
"""Bytes read behind a request in flight. Without reading ahead, a disconnect during a parked request stays unseen."""


@value
class Send:
    """Bytes for a connection: its whole output of one input. `more`: further output waits for `flushed`."""

    connection: int
    data: bytes
    more: bool = False


@value
class Close:
    """A connection to close after its last bytes were sent; `reason` is for the log."""

    connection: int
    reason: str


Output = Send | Close


@value
class Answer:
    """A response for a puppet: Kafka's error codes, in the shape of the latest version."""

    connection: int
    call: Call
    response: Message


SHOWN_MAX = 200
"""The longest client id in a log line; the rest is cut."""

REMEMBERED_MAX = 1_024
"""The size in bytes of the largest frames that a connection remembers."""


class ReadRequest(NamedTuple):
    """A request as it was read: its frame, its API, the version of its response, and the message."""

    frame: bytes
    key: int
    version: int
    message: Message


class EncodedResponse(NamedTuple):
    """A response with the API and version of its request, and its frame."""

    key: int
    version: int
    message: Message
    frame: bytes


Inbox = deque[tuple[int, Answer | Close]]
"""Responses and disconnects for puppets with their node time; the puppets empty it."""


@mutable
class Connection:
    """A client connection. `in_flight` is the request that awaits its response.

    `out` (`out_bytes` in size) collects the output of the current input. A puppet's connection has `messages` in place
    of frames, each with its version, and an `inbox`. `follows_trace`: the client has read the trace's topic. `frame` is
    the latest request, unless it is large or secret; a report of a bug shows it. `latest` is that request as it was
    read, and `answered` its response, if they are small and the request repeats the one before it. A connection to a
    listener with SASL has an `authenticator`; `is_refused`: it closes late, after an attempt without headers, or beyond
    a quota of connections. `is_throttled`: its next request waits for the end of a throttle time. `principal` is
    `User:ANONYMOUS` before an authentication, and "" for puppets and brokers; `has_token`: it is that of a delegation
    token. `reason` is that of the refusal of the request in flight, if its response has no field for it.
    """

    number: int
    client_host: str
    listener: str
    frames: FrameBuffer
    in_flight: RequestReceived | None = None
    out: list[bytes] = field(default_factory=list)
    out_bytes: int = 0
    client_id: str = ""
    software: tuple[str, str] = ("", "")
    empty_fetches: int = 0
    messages: deque[tuple[int, Message]] | None = None
    requests_served: int = 0
    follows_trace: bool = False
    inbox: Inbox | None = None
    frame: bytes = b""
    latest: ReadRequest | None = None
    answered: EncodedResponse | None = None
    authenticator: Authenticator | None = None
    is_refused: bool = False
    is_throttled: bool = False
    principal: str = ANONYMOUS
    has_token: bool = False
    reason: str = ""

    def call(self, correlation_id: int, key: int, version: int) -> Call:
        """Return the identity of a request of this connection."""
        client_id, host = self.client_id, self.client_host
        return Call(
            self.number, correlation_id, key, version, client_id, host, self.listener, self.principal, self.has_token
        )

    @property
    def shown(self) -> str:
        """The client in a log line: its id, quoted and cut, and its host."""
        return f"{self.client_id[:SHOWN_MAX]!r} ({self.client_host})"

    @property
    def has_had_its_turn(self) -> bool:
        """Whether the collected output ends the connection's turn."""
        return len(self.out) >= RESPONSES_PER_TURN or self.out_bytes >= RESPONSE_BYTES_PER_TURN

    @property
    def is_muted(self) -> bool:
        """Whether to stop reading: a request is in flight, refused or throttled, and the read-ahead is full."""
        waits = self.in_flight is not None or self.is_refused or self.is_throttled
        return waits and len(self.frames) >= READ_AHEAD_BYTES
