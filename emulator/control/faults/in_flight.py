"""State of the fault injector: requests in flight, hold points, and the decisions and statistics of rules."""

from __future__ import annotations

from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING, cast

from koordinator.wire.values import mutable

from ..results import Request

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ...broker.interceptor import InterceptedBroker
    from ...core.effects import Call
    from .actions import Action
    from .request_context import RequestContext
    from .rules import FaultRule, Match

KEPT_REQUESTS = 100
"""Number of requests kept in the statistics of each rule; older ones are discarded."""


@mutable
class InFlightRequest:
    """A request in flight. `passed` holds ids of released holds, `behind` correlation ids traced as waiting behind."""

    broker: InterceptedBroker
    call: Call
    request: Message
    context: RequestContext
    passed: set[str] = field(default_factory=set)
    behind: set[int] = field(default_factory=set)
    client_closed: bool = False

    @property
    def member_id(self) -> str | None:
        """The member id of the request, if it has exactly one."""
        members = self.context.member_ids
        return members[0] if len(members) == 1 else None

    def queued_behind(self) -> list[InFlightRequest]:
        """Return the requests that wait behind this one on its connection."""
        queued = self.broker.queued_requests(self.call.connection)
        return [InFlightRequest(self.broker, *each, self.context.of_node(*each)) for each in queued]

    def summary(self) -> Request:
        """Return the request as operations report it."""
        return Request(
            api=self.context.api,
            version=self.context.version,
            connection=self.call.connection,
            correlation_id=self.call.correlation_id,
            client_id=self.context.client_id,
            group=self.context.group,
            member_id=self.member_id,
            node=self.context.node_id,
        )


@mutable
class HoldPoint:
    """A hold or a lock-step, with the requests parked at it.

    `entered` counts all requests that entered. A lock-step has `clients` and releases requests in rounds, one request
    per client.
    """

    id: str
    match: Match
    clients: tuple[str, ...] = ()
    inside: list[InFlightRequest] = field(default_factory=list)
    entered: int = 0
    first: InFlightRequest | None = None
    is_open: bool = False
    rounds: int = 0

    def takes(self, in_flight: InFlightRequest) -> bool:
        """Return whether a request is to be parked here."""
        if self.is_open or self.id in in_flight.passed or not self.match.admits(in_flight.context):
            return False
        return not self.clients or self.client_of(in_flight) is not None

    def enter(self, in_flight: InFlightRequest) -> None:
        """Park a request."""
        self.inside.append(in_flight)
        self.entered += 1
        if self.first is None:
            self.first = in_flight

    def client_of(self, in_flight: InFlightRequest) -> str | None:
        """Return the lock-step client that sent a request, by client id, `group.instance.id` or member id."""
        names = (in_flight.context.client_id, *in_flight.context.instance_ids, *in_flight.context.member_ids)
        return next((client for client in self.clients if client in names), None)

    def complete_round(self) -> list[InFlightRequest]:
        """Remove and return the first request of each client; return an empty list if a client has none."""
        first: dict[str, InFlightRequest] = {}
        for in_flight in self.inside:
            first.setdefault(cast("str", self.client_of(in_flight)), in_flight)
        if len(first) < len(self.clients):
            return []
        for in_flight in first.values():
            self.inside.remove(in_flight)
        return [first[client] for client in self.clients]


@mutable
class RuleStats:
    """A rule, the number of requests it `matched` and `acted` on, and the last requests it acted on."""

    rule: FaultRule
    matched: int = 0
    acted: int = 0
    requests: deque[Request] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))


@mutable
class Decision:
    """The decision on a request: the acting rule of each slot, the delay and the jitter, in ms."""

    in_flight: InFlightRequest
    rules: dict[str, FaultRule]
    delay_ms: int = 0
    jitter_ms: int = 0
    synthetic: bool = False

    @property
    def rule_id(self) -> str | None:
        """The ids of the acting rules, separated by commas."""
        return ",".join(rule.id for rule in self.rules.values()) or None

    def action(self, slot: str) -> Action | None:
        """Return the action of the slot's rule, if there is one."""
        rule = self.rules.get(slot)
        return None if rule is None else rule.action
