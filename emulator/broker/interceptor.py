"""The interceptor of requests and responses: the extension point for holds and fault rules.

A cluster without rules and holds has none, at no cost. The broker calls its interceptor when it has decoded a request,
and again when the core has answered it. The interceptor returns None for normal processing, or the `Step`s to take
instead. A parked request stays in flight: later requests of its connection wait, so responses keep their order. The
interceptor continues it with `ClusterRuntime.resume`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from koordinator.wire.apis import Message

    from ..core.effects import Call
    from ..core.node import NodeCore
    from ..trace.events import RequestReceived, TraceEvent


@value
class Park:
    """Keep the request in flight, without a response."""


@value
class Serve:
    """Pass a request to the node, even if its client has disconnected."""

    request: Message


@value
class Respond:
    """Send a response; unless `ends`, the request stays in flight.

    `alter` edits the encoded bytes; puppets exchange messages, so they get no response then. `mute_ms`: the time for
    which the connection is muted after it. `rule_id` and `synthetic` go to the trace.
    """

    response: Message
    rule_id: str | None = None
    synthetic: bool = False
    alter: Callable[[bytes], bytes] | None = None
    ends: bool = True
    mute_ms: int = 0


@value
class Write:
    """Send more bytes of a response; unless `ends`, the request stays in flight."""

    data: bytes
    ends: bool = True


@value
class Disconnect:
    """Close the connection of the request, after the bytes already sent on it."""

    reason: str


Step = Park | Serve | Respond | Write | Disconnect


@value
class Interception:
    """The steps for an intercepted request, its rule for the trace, and further trace events."""

    steps: tuple[Step, ...]
    rule_id: str | None = None
    notes: tuple[TraceEvent, ...] = ()


class InterceptedBroker(Protocol):
    """The broker of a node, as an interceptor sees it; a restarted node has a new one."""

    @property
    def node(self) -> NodeCore:
        """The core of the node."""

    def queued_requests(self, connection: int) -> list[tuple[Call, Message]]:
        """Return the decodable requests that wait behind the request in flight."""


class Interceptor(Protocol):
    """Decides on requests and responses; times are node time in ms."""

    def may_act_on(self, group_id: str, apis: Collection[str]) -> bool:
        """Return whether it may act on, or count, a request of these APIs for a group."""

    def on_request(
        self, now: int, broker: InterceptedBroker, received: RequestReceived, request: Message
    ) -> Interception | None:
        """Decide on a request that was decoded and is in flight."""

    def on_response(
        self, now: int, broker: InterceptedBroker, call: Call, response: Message
    ) -> tuple[Step, ...] | None:
        """Decide on the response to a request in flight."""

    def on_queued(self, now: int, broker: InterceptedBroker, call: Call) -> None:
        """Note that further bytes wait behind a request in flight."""

    def on_disconnected(self, now: int, broker: InterceptedBroker, connection: int) -> None:
        """Note that a connection has closed."""
