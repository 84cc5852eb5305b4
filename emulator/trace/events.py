"""The events of the trace, besides the facts of the core (`core.effects.Fact`).

Events keep the messages themselves; `lines` renders them when a reader asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from koordinator.wire.values import value

from ..core.effects import Fact
from ..core.transactions.facts import TransactionChanged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.apis import Message
    from koordinator.wire.errors import Error

    from ..core.effects import Call

WHOLE_CLUSTER = -1
"""The node of events that concern no single node; `core.data.topic.NO_LEADER` is equal."""


@value
class Connected:
    """A connection was opened."""

    connection: int
    client_host: str


@value
class Disconnected:
    """A connection was closed by the peer (`reason` is empty) or by the broker."""

    connection: int
    client_host: str
    client_id: str
    reason: str
    empty_fetches: int


@value
class RequestReceived:
    """A request was received.

    `group_now` is the time of the group that the request names, else the node's time, in ms. `received_us` is wall
    time in microseconds. `size` is the size of the frame in bytes, `weight` the estimated memory of the event.
    """

    call: Call
    request: Message
    group_id: str | None
    received_us: int
    group_now: int
    software: tuple[str, str]
    size: int
    weight: int
    rule_id: str | None = None


@value
class ResponseSent:
    """A response was sent. `error_code` is the code on the wire, in the configured numbering.

    `body` replaces the body that the response itself would have.
    """

    received: RequestReceived
    response: Message
    error: Error
    error_code: int
    group_now: int
    latency_us: int
    empty_fetches: int
    size: int
    weight: int
    rule_id: str | None = None
    synthetic: bool = False
    body: dict[str, object] | None = None


@value
class NodeChanged:
    """A node was started, stopped, killed, paused, resumed, added or removed."""

    change: str


@value
class LoopLagged:
    """The server's loop ran `lag_ms` milliseconds after it was due: it was busy, or the machine was."""

    lag_ms: int


@value
class LeaderMoved:
    """A test moved a partition's leadership to a node; `group_id` is the group for which it did, if any."""

    topic: str
    partition: int
    before: int
    group_id: str | None


@value
class VerbUsed:
    """A test changed a group or the cluster outside Kafka's protocol: `verb` with `arguments`."""

    verb: str
    group_id: str | None
    group_now: int
    arguments: dict[str, object]


@value
class ClockMoved:
    """A group's clock was moved or changed its mode; `cause` is the test's operation, or `auto`."""

    group_id: str
    before: int
    after: int
    mode: str
    cause: str


@value
class PuppetChanged:
    """A puppet was created, assigned, revoked, lost, stopped or failed. `holds` is its assignment afterwards."""

    group_id: str
    group_now: int
    name: str
    change: str
    behaviour: str
    member_id: str
    instance_id: str | None
    generation: int
    error: str | None
    holds: tuple[tuple[str, tuple[int, ...]], ...]


@value
class FaultEvent:
    """A rule or a hold was `added` or `removed`, or applied to a request.

    A rule was applied (`used`) or not applicable to the group (`failed`). A request `entered` a hold, was `released`,
    or waits `behind` a held request; a lock-step is a hold with automatic release. `body` has the rule, its action, or
    the problem.
    """

    kind: Literal["rule", "hold"]
    change: str
    fault_id: str
    group_id: str | None
    body: Mapping[str, object]
    call: Call | None = None
    member_id: str | None = None
    group_now: int | None = None


TraceEvent = (
    ResponseSent
    | RequestReceived
    | ClockMoved
    | Connected
    | Disconnected
    | Fact
    | FaultEvent
    | LeaderMoved
    | LoopLagged
    | NodeChanged
    | PuppetChanged
    | VerbUsed
)


def group_of(event: TraceEvent) -> str | None:
    """Return the group of an event; None if it concerns none or several."""
    match event:
        case ResponseSent():
            return event.received.group_id
        case Connected() | Disconnected() | LoopLagged() | NodeChanged() | TransactionChanged():
            return None
        case _:
            return event.group_id


def concerns_all_groups(event: TraceEvent) -> bool:
    """Return whether an event is a test's change of a topic or a setting."""
    return isinstance(event, VerbUsed) and event.group_id is None
