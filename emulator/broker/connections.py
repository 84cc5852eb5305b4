"""The connections of a node: what the broker ring keeps of each, and what leaves by them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.frames import FrameBuffer

    from ..core.effects import Call
    from ..trace.events import RequestReceived

ANSWERS_AT_ONCE = 32
ANSWER_BYTES_AT_ONCE = 256 * 1024
"""A connection's turn ends with the answer that brings it to so many answers, or bytes of them."""

READ_AHEAD_BYTES = 64 * 1024
"""So much may wait behind a request in hand before nothing more is read. If nothing were, nobody would notice that a
client has gone whose request will never be answered."""


@value
class Send:
    """Bytes for a connection; everything it gets from one input, in one piece. `more` is held back until `flushed`."""

    connection: int
    data: bytes
    more: bool = False


@value
class Close:
    """Close a connection once what was sent to it has left; `reason` is for the log."""

    connection: int
    reason: str


Output = Send | Close


@value
class Answer:
    """What a puppet is told, as the core has answered: Kafka's error numbers, and the shape of the newest version."""

    connection: int
    call: Call
    response: Message


Inbox = deque[tuple[int, Answer | Close]]
"""What has come of the connections of puppets, and when, in the node's time; the puppets empty it."""


@dataclass(slots=True, eq=False)
class Connection:
    """One client connection. `in_flight` is the request it waits for the answer to, if there is one.

    `out`, of `out_bytes`, collects what leaves it with the present input. A puppet's has no frames but `messages`, with
    the version of each, that wait to be served. `follows_trace`: it has read the trace's topic.
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
    asked: int = 0
    follows_trace: bool = False

    @property
    def had_its_turn(self) -> bool:
        """Whether what is to leave now is enough for once."""
        return len(self.out) >= ANSWERS_AT_ONCE or self.out_bytes >= ANSWER_BYTES_AT_ONCE

    @property
    def is_muted(self) -> bool:
        """Whether nothing more is to be read: a request is in hand, and as much waits behind it as may."""
        return self.in_flight is not None and len(self.frames) >= READ_AHEAD_BYTES
