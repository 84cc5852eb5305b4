"""The gate: who may stop requests and answers on their way through the broker ring, and change what becomes of them.

A node without rules and holds has none, and nothing is paid for it. A gate (`controls.gatekeeper`) is asked at two
places, for puppets as for clients: when a request has been read, before the node is given it; and when its answer is
ready, before it is rendered for the version that was asked. It says None to let things take their course, or else
which `Step` is taken instead. A request that is parked stays in hand, so what its connection has sent behind it
waits, and answers keep their order; whoever parked it has the next step taken by `Brokers.resume`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

    from ..core.effects import Call
    from ..trace.events import RequestReceived, TraceEvent
    from .broker import Broker


@value
class Park:
    """Nothing happens to it for now."""


@value
class Serve:
    """The node is given the request, even if its client has gone in the meantime."""

    request: Message


@value
class Respond:
    """This is the answer. `alter` says what leaves of its bytes; unless `ends`, the request stays in hand after it.

    What is done to the bytes cannot be done to a puppet's, which speaks messages: it is told nothing. `rule_id` and
    `synthetic` are for the trace.
    """

    response: Message
    rule_id: str | None = None
    synthetic: bool = False
    alter: Callable[[bytes], bytes] | None = None
    ends: bool = True


@value
class Write:
    """More bytes of an answer leave; `ends` as above."""

    data: bytes
    ends: bool = True


@value
class CloseConnection:
    """The connection of a request that is still in hand is closed, after what has been sent on it."""

    reason: str


Step = Park | Serve | Respond | Write | CloseConnection


@value
class Interception:
    """What becomes of a request: the steps to take, its rules for the trace, and what else is noted there."""

    steps: tuple[Step, ...]
    rule_id: str | None = None
    notes: tuple[TraceEvent, ...] = ()


class Interceptor(Protocol):
    """What the broker ring asks. `broker` is the node's, which is another one when it has been started again."""

    def on_request(self, now: int, broker: Broker, asked: RequestReceived, request: Message) -> Interception | None:
        """A request has been read, and is in hand."""

    def on_response(self, now: int, broker: Broker, call: Call, response: Message) -> tuple[Step, ...] | None:
        """The answer to a request in hand is ready."""

    def on_queued(self, now: int, broker: Broker, call: Call) -> None:
        """More has come in on a connection that has a request in hand, and waits behind it."""

    def on_disconnected(self, now: int, broker: Broker, connection: int) -> None:
        """A connection has closed."""
