"""What the gatekeeper keeps: requests on their way, where they are stopped, and what rules have decided about them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ...broker.broker import Broker
    from ...core.effects import Call
    from .actions import Action
    from .request_context import RequestContext
    from .rules import FaultRule, Match

KEPT_REQUESTS = 100
"""So many of the requests a rule has acted on are remembered, the newest."""


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """A request on its way. `passed` are the holds it has left behind, `behind` what was noted to wait behind it."""

    broker: Broker
    call: Call
    request: Message
    sight: RequestContext
    passed: set[str] = field(default_factory=set)
    behind: set[int] = field(default_factory=set)
    client_is_gone: bool = False

    @property
    def member_id(self) -> str | None:
        """The one member it is of, if it names one."""
        members = self.sight.member_ids
        return members[0] if len(members) == 1 else None

    def data(self) -> dict[str, object]:
        """As an operation gives it."""
        return {
            "api": self.sight.api,
            "version": self.sight.version,
            "connection": self.call.connection,
            "correlation_id": self.call.correlation_id,
            "client_id": self.sight.client_id,
            "group": self.sight.group,
            "member_id": self.member_id,
            "node": self.sight.node_id,
        }


@dataclass(slots=True, eq=False)
class HoldPoint:
    """Where requests are parked until they are let go: a hold, or a lock-step, which lets them go by itself.

    `has_entered` counts all there ever were. A lock-step has `clients`: in rounds it lets go the first request of each.
    """

    id: str
    match: Match
    clients: tuple[str, ...] = ()
    inside: list[InFlightRequest] = field(default_factory=list)
    has_entered: int = 0
    first: InFlightRequest | None = None
    is_open: bool = False
    rounds: int = 0

    def takes(self, passage: InFlightRequest) -> bool:
        """Whether a request is stopped here."""
        if self.is_open or self.id in passage.passed or not self.match.admits(passage.sight):
            return False
        return not self.clients or self.client_of(passage) is not None

    def enter(self, passage: InFlightRequest) -> None:
        """A request is stopped here."""
        self.inside.append(passage)
        self.has_entered += 1
        if self.first is None:
            self.first = passage

    def client_of(self, passage: InFlightRequest) -> str | None:
        """Which of the clients a request is of: by client id, or `group.instance.id`."""
        names = (passage.sight.client_id, *passage.sight.instance_ids)
        return next((each for each in self.clients if each in names), None)

    def complete_round(self) -> list[InFlightRequest]:
        """The first request of each client, if there is one of every one; then they are not inside any more."""
        first: dict[str, InFlightRequest] = {}
        for passage in self.inside:
            first.setdefault(cast("str", self.client_of(passage)), passage)
        if len(first) < len(self.clients):
            return []
        for passage in first.values():
            self.inside.remove(passage)
        return [first[client] for client in self.clients]


@dataclass(slots=True, eq=False)
class RuleStats:
    """A rule, and what has become of it: how often it `matched`, how often it `acted`, and the last it acted on."""

    rule: FaultRule
    matched: int = 0
    acted: int = 0
    requests: deque[dict[str, object]] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))


@dataclass(slots=True, eq=False)
class Decision:
    """What rules have decided about a request: by slot, the rule that acts; and how long its answer is disturbed."""

    passage: InFlightRequest
    rules: dict[str, FaultRule]
    delay_ms: int = 0
    disturbed_ms: int = 0
    synthetic: bool = False

    @property
    def rule_id(self) -> str | None:
        """The ids of the rules, with commas between them."""
        return ",".join(rule.id for rule in self.rules.values()) or None

    def action(self, slot: str) -> Action | None:
        """What the rule of a slot does, if there is one."""
        rule = self.rules.get(slot)
        return None if rule is None else rule.action
