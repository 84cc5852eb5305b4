"""Fault injector: the interceptor of a cluster, which applies holds, lock-steps, rules and jitter to requests.

A request meets holds first and rules after its release. Rules therefore see the group's state at the time the request
is processed, not at the time it arrived.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from koordinator.wire.apis import APIS
from koordinator.wire.messages.produce import ProduceRequest
from koordinator.wire.schema import fields_of

from ...broker.error_responses import error_response
from ...broker.interceptor import Disconnect, Interception, Park, Respond, Serve, Step, Write
from ...trace.events import WHOLE_CLUSTER, FaultEvent
from ..seeded_random import between, draw, log_normal
from ..time.scheduler import Scheduler
from ..verbs import Verbs
from .actions import (
    Delay,
    Drip,
    Drop,
    Evict,
    Fence,
    ForceRebalance,
    LoseReply,
    NeverAnswer,
    ReturnError,
    Throttle,
    Truncate,
    WrongCorrelationId,
    action_data,
)
from .error_responses import add_topic_errors, is_served_first
from .in_flight import Decision, HoldPoint, InFlightRequest, RuleStats
from .kafka_errors import PLACES_OF, is_returned_by_kafka
from .request_context import RequestContext

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from koordinator.wire.apis import Message

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...broker.interceptor import InterceptedBroker
    from ...core.effects import Call
    from ...trace.events import RequestReceived, TraceEvent
    from .actions import Action
    from .rules import FaultRule

JITTER_MS_MAX = 20
"""The longest jitter of one request or response."""

JITTER_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "FindCoordinator")

EMPTY: Mapping[str, object] = MappingProxyType({})

BYTE_ACTIONS = (Truncate, Drip, WrongCorrelationId)
"""Actions on response bytes. Puppets exchange messages, not bytes, and lose their connection instead."""


class FaultInjector:
    """The interceptor of a cluster (`broker.interceptor`). `seed` determines all random draws."""

    def __init__(self, runtime: ClusterRuntime, seed: int) -> None:
        self._runtime = runtime
        self._seed = seed
        self.rule_stats: dict[str, RuleStats] = {}
        """Rules with their statistics by rule id, oldest first."""
        self.hold_points: dict[str, HoldPoint] = {}
        """Holds and lock-steps by id, oldest first."""
        self.jitter_seed: int | None = None
        """The seed of the jitter; None while jitter is off."""
        self._request_counts: dict[tuple[str, str], int] = {}
        self._decisions: dict[int, Decision] = {}
        self._scheduler = Scheduler(runtime)
        self._buffer: list[TraceEvent] | None = None
        self._outputs: list[Output] = []
        self._verbs = Verbs(runtime, self._outputs.extend)

    def update_registration(self) -> None:
        """Register as the cluster's interceptor while there is work, and unregister otherwise."""
        runtime = self._runtime
        jitters = self.jitter_seed is not None
        is_active = any((self.rule_stats, self.hold_points, jitters, self._decisions, self._scheduler))
        runtime.interceptor = self if is_active else None
        if is_active:
            runtime.tickers[self._scheduler] = None
        else:
            runtime.tickers.pop(self._scheduler, None)

    # -- interceptor -----------------------------------------------------------------------------------------

    def may_act_on(self, group_id: str, apis: Collection[str]) -> bool:
        """Return whether the jitter is on, or a rule or a hold matches such requests."""
        matches = [stats.rule.match for stats in self.rule_stats.values()]
        matches += [hold_point.match for hold_point in self.hold_points.values()]
        return self.jitter_seed is not None or any(each.may_admit(group_id, apis) for each in matches)

    def on_request(
        self, now: int, broker: InterceptedBroker, received: RequestReceived, request: Message
    ) -> Interception | None:
        """Decide on a request that was read."""
        call = received.call
        context = RequestContext(self._runtime, broker.node.node_id, call, request)
        self._buffer = []
        steps, decision = self._admit(now, InFlightRequest(broker, call, request, context))
        notes, self._buffer = tuple(self._buffer), None
        if not notes and len(steps) == 1 and isinstance(steps[0], Serve):
            return None
        return Interception(steps, None if decision is None else decision.rule_id, notes)

    def on_response(
        self, now: int, _broker: InterceptedBroker, call: Call, response: Message
    ) -> tuple[Step, ...] | None:
        """Decide on the response to a request."""
        decision = self._decisions.get(call.connection)
        if decision is None or decision.in_flight.call is not call:
            return None
        return self._respond(now, decision, response)

    def on_queued(self, now: int, _broker: InterceptedBroker, call: Call) -> None:
        """Trace a request that waits behind a held request on its connection."""
        for hold_point in self.hold_points.values():
            for in_flight in hold_point.inside:
                if in_flight.call is call:
                    self._note_behind(now, hold_point, in_flight)

    def on_disconnected(self, _now: int, _broker: InterceptedBroker, connection: int) -> None:
        """Mark the held requests of a closed connection.

        A released hold still applies them, as Kafka applies queued requests of disconnected clients. A lock-step
        discards them and waits for the client's next request.
        """
        self._decisions.pop(connection, None)
        for hold_point in self.hold_points.values():
            for in_flight in [request for request in hold_point.inside if request.call.connection == connection]:
                in_flight.client_closed = True
                if hold_point.clients:
                    hold_point.inside.remove(in_flight)

    # -- requests --------------------------------------------------------------------------------------------

    def _admit(self, now: int, in_flight: InFlightRequest) -> tuple[tuple[Step, ...], Decision | None]:
        for hold_point in self.hold_points.values():
            if hold_point.takes(in_flight):
                hold_point.enter(in_flight)
                self._note_request(now, "hold", "entered", hold_point.id, in_flight)
                self._release_round(now, hold_point)
                return (Park(),), None
        decision = self._judge(now, in_flight)
        if decision is None:
            return (Serve(in_flight.request),), None
        self._decisions[in_flight.call.connection] = decision
        if decision.action("group") is not None:
            self._scheduler.enter(now, 0, lambda at: self._change_group(at, decision))
            return (Park(),), decision
        return self._serve(now, decision), decision

    def _judge(self, now: int, in_flight: InFlightRequest) -> Decision | None:
        """Select the rules that act: the oldest of each slot. Count every match."""
        rules: dict[str, FaultRule] = {}
        context = in_flight.context
        for stats in self.rule_stats.values():
            rule = stats.rule
            if not rule.match.admits(context) or not _applies(rule.action, context):
                continue
            stats.matched += 1
            slot = rule.action.slot
            if slot in rules or not rule.trigger.acts(stats.matched, stats.acted, self._chance(stats, "acts")):
                continue
            stats.acted += 1
            stats.requests.append(in_flight.summary())
            rules[slot] = rule
        jitter_ms = self._draw_jitter(context)
        if not rules and not jitter_ms:
            return None
        decision = Decision(in_flight, rules, jitter_ms=jitter_ms)
        for rule in rules.values():
            body = action_data(rule.action)
            if isinstance(rule.action, Delay):
                body["ms"] = decision.delay_ms = self._draw_delay(self.rule_stats[rule.id], rule.action)
            self._note_request(now, "rule", "used", rule.id, in_flight, body)
        return decision

    def _chance(self, stats: RuleStats, purpose: str) -> float:
        return draw(self._seed, "rule", stats.rule.id, stats.matched, purpose)

    def _draw_delay(self, stats: RuleStats, delay: Delay) -> int:
        if delay.ms is not None:
            return delay.ms
        chance = self._chance(stats, "lasts")
        if delay.uniform_ms is not None:
            return between(*delay.uniform_ms, chance)
        assert delay.lognormal_ms is not None, "Delay validates its fields"
        return round(log_normal(*delay.lognormal_ms, chance))

    def _draw_jitter(self, context: RequestContext) -> int:
        """Return the jitter in ms: negative to delay the request, positive to delay the response."""
        if self.jitter_seed is None or context.api not in JITTER_APIS:
            return 0
        name = context.client_id, context.api
        self._request_counts[name] = number = self._request_counts.get(name, 0) + 1
        ms = between(1, JITTER_MS_MAX, draw(self.jitter_seed, "lasts", *name, number))
        # one third each: request, response, no jitter
        return ms * (between(0, 2, draw(self.jitter_seed, "when", *name, number)) - 1)

    def _change_group(self, now: int, decision: Decision) -> list[Output]:
        """Perform a rule's action on the group and resume the request. Trace an action that is not possible."""
        try:
            self._perform(now, decision)
        except ValueError as error:
            self._note_request(
                now, "rule", "failed", decision.rules["group"].id, decision.in_flight, {"problem": str(error)}
            )
        outputs = list(self._outputs)
        self._outputs.clear()
        return outputs + self._resume(now, decision.in_flight, self._serve(now, decision))

    def _perform(self, now: int, decision: Decision) -> None:
        context, action = decision.in_flight.context, decision.action("group")
        group = context.group
        if group is None:
            raise ValueError(f"this {context.api} is for no group, or for several: {context.groups}")
        match action:
            case Evict():
                member = action.member or decision.in_flight.member_id or context.client_id
                self._verbs.evict(now, group=group, member=member, as_if=action.as_if)
            case Fence():
                instance = action.instance or next(iter(context.instance_ids), "")
                self._verbs.fence(now, group=group, member=instance)
            case ForceRebalance():
                self._verbs.rebalance(now, group=group, cause=action.cause)
            case _:
                raise AssertionError(f"{action} does not act on the group")

    def _serve(self, now: int, decision: Decision) -> tuple[Step, ...]:
        """Pass the request to the node, unless a rule replaces that step."""
        in_flight, action = decision.in_flight, decision.action("response")
        match action:
            case Drop():
                return (Disconnect(f"rule {decision.rules['response'].id}: dropped"),)
            case NeverAnswer(apply=False):
                return (Park(),)
            case ReturnError() if isinstance(in_flight.request, ProduceRequest) and in_flight.request.acks == 0:
                return (Disconnect(f"rule {decision.rules['response'].id}: {action.name}, and no answer is wanted"),)
            case ReturnError():
                at = action.at or PLACES_OF[in_flight.context.api][0]
                decision.synthetic = not is_returned_by_kafka(in_flight.context, action.code, at)
                if not is_served_first(in_flight.context.api):
                    return self._respond(
                        now, decision, error_response(in_flight.call, in_flight.request, action.code, at)
                    )
            case _:
                pass
        if decision.jitter_ms < 0:
            self._scheduler.enter(
                now, -decision.jitter_ms, lambda at: self._resume(at, in_flight, (Serve(in_flight.request),))
            )
            return (Park(),)
        return (Serve(in_flight.request),)

    # -- responses -------------------------------------------------------------------------------------------

    def _respond(self, now: int, decision: Decision, response: Message) -> tuple[Step, ...]:
        """Apply rules and jitter to a response and send it, at once or after a delay."""
        action, throttle, delay = decision.action("response"), decision.action("throttle"), decision.action("delay")
        if isinstance(action, NeverAnswer):
            return (Park(),)
        if isinstance(action, ReturnError) and is_served_first(decision.in_flight.context.api):
            response = add_topic_errors(response, action.code)
        if isinstance(throttle, Throttle) and _has("throttle_time_ms", decision.in_flight.context):
            response = replace(cast("Any", response), throttle_time_ms=throttle.ms)
        ms = decision.delay_ms + max(decision.jitter_ms, 0)
        if not ms:
            return self._send(now, decision, response)
        in_group_time = isinstance(delay, Delay) and delay.clock == "group"
        self._scheduler.enter(
            now,
            ms,
            lambda at: self._resume(at, decision.in_flight, self._send(at, decision, response)),
            decision.in_flight.context.group if in_group_time else None,
        )
        return (Park(),)

    def _send(self, now: int, decision: Decision, response: Message) -> tuple[Step, ...]:
        in_flight, action = decision.in_flight, decision.action("response")
        if self._decisions.get(in_flight.call.connection) is decision:
            del self._decisions[in_flight.call.connection]
        if isinstance(action, LoseReply) or (isinstance(action, BYTE_ACTIONS) and in_flight.call.connection < 0):
            return (Disconnect(f"rule {decision.rules['response'].id}: the answer is lost"),)
        throttle = decision.action("throttle")
        mute_ms = throttle.ms if isinstance(throttle, Throttle) and throttle.mute else 0
        whole = Respond(response, decision.rule_id, decision.synthetic, mute_ms=mute_ms)
        match action:
            case Truncate(at):
                cut = replace(whole, alter=lambda frame: frame[:at], ends=False)
                return cut, Disconnect(f"rule {decision.rules['response'].id}: truncated at byte {at}")
            case Drip():
                return (replace(whole, alter=lambda frame: self._drip(now, in_flight, action, frame), ends=False),)
            case WrongCorrelationId():
                return (replace(whole, synthetic=True, alter=_other_correlation_id),)
            case _:
                return (whole,)

    def _drip(self, now: int, in_flight: InFlightRequest, drip: Drip, frame: bytes) -> bytes:
        size = drip.piece_bytes
        first, *rest = (frame[begin : begin + size] for begin in range(0, len(frame), size))
        for number, piece in enumerate(rest, 1):
            self._write_later(now, number * drip.every_ms, in_flight, Write(piece, ends=number == len(rest)))
        if not rest:
            self._write_later(now, 0, in_flight, Write(b""))
        return first

    def _write_later(self, now: int, ms: int, in_flight: InFlightRequest, write: Write) -> None:
        self._scheduler.enter(now, ms, lambda at: self._resume(at, in_flight, (write,)))

    # -- release of holds ------------------------------------------------------------------------------------

    def release(self, now: int, hold_point: HoldPoint, requests: Iterable[InFlightRequest]) -> list[Output]:
        """Resume held requests. Requests of closed connections skip further holds and rules."""
        outputs: list[Output] = []
        for in_flight in requests:
            in_flight.passed.add(hold_point.id)
            self._note_request(now, "hold", "released", hold_point.id, in_flight)
            steps: tuple[Step, ...] = (Serve(in_flight.request),)
            if not in_flight.client_closed:
                steps, _ = self._admit(now, in_flight)
            outputs += self._resume(now, in_flight, steps)
        return outputs

    def refuse(
        self, now: int, hold_point: HoldPoint, requests: Iterable[InFlightRequest], error: ReturnError
    ) -> list[Output]:
        """Return an error for held requests without applying them."""
        outputs: list[Output] = []
        for in_flight in requests:
            self._note_request(now, "hold", "released", hold_point.id, in_flight, {"error": error.name})
            at = error.at or PLACES_OF[in_flight.context.api][0]
            synthetic = not is_returned_by_kafka(in_flight.context, error.code, at)
            response = error_response(in_flight.call, in_flight.request, error.code, at)
            outputs += self._resume(now, in_flight, (Respond(response, hold_point.id, synthetic),))
        return outputs

    def _release_round(self, now: int, hold_point: HoldPoint) -> None:
        """Release a complete lock-step round in the order drawn from the seed."""
        if not hold_point.clients:
            return
        requests = hold_point.complete_round()
        if requests:
            hold_point.rounds += 1
            name = hold_point.match, hold_point.rounds
            requests.sort(key=lambda request: draw(self._seed, "lockstep", *name, hold_point.client_of(request)))
            self._scheduler.enter(now, 0, lambda at: self.release(at, hold_point, requests))

    def _resume(self, now: int, in_flight: InFlightRequest, steps: tuple[Step, ...]) -> list[Output]:
        return self._runtime.resume(now, in_flight.broker, in_flight.call, steps)

    def note_hold_point(self, now: int, change: str, hold_point: HoldPoint) -> None:
        """Trace that a hold was added or removed."""
        clients = {"clients": list(hold_point.clients)} if hold_point.clients else {}
        group, body = hold_point.match.group, {"match": hold_point.match.data(), **clients}
        group_now = self._scheduler.group_now(now, group)
        self._note(WHOLE_CLUSTER, FaultEvent("hold", change, hold_point.id, group, body, group_now=group_now))

    def note_rule(self, now: int, change: str, rule: FaultRule) -> None:
        """Trace that a rule was added or removed."""
        group = rule.match.group
        group_now = self._scheduler.group_now(now, group)
        self._note(WHOLE_CLUSTER, FaultEvent("rule", change, rule.id, group, rule.data(), group_now=group_now))

    def _note_request(
        self,
        now: int,
        kind: Literal["rule", "hold"],
        change: str,
        fault_id: str,
        in_flight: InFlightRequest,
        body: Mapping[str, object] = EMPTY,
    ) -> None:
        group, call = in_flight.context.group, in_flight.call
        group_now = self._scheduler.group_now(now, group)
        event = FaultEvent(kind, change, fault_id, group, body, call, in_flight.member_id, group_now)
        self._note(in_flight.context.node_id, event)

    def _note_behind(self, now: int, hold_point: HoldPoint, in_flight: InFlightRequest) -> None:
        for waiting in in_flight.queued_behind():
            if waiting.call.correlation_id not in in_flight.behind:
                in_flight.behind.add(waiting.call.correlation_id)
                body = {"behind": in_flight.call.correlation_id}
                self._note_request(now, "hold", "behind", hold_point.id, waiting, body)

    def _note(self, node_id: int, event: TraceEvent) -> None:
        if self._buffer is None:
            self._runtime.trace.add(self._runtime.trace.now_us(), event, node_id)
        else:
            self._buffer.append(event)


def _applies(action: Action, context: RequestContext) -> bool:
    """Return whether the response version has the field that the action sets."""
    if isinstance(action, Throttle):
        return action.mute or _has("throttle_time_ms", context)
    return not isinstance(action, ReturnError) or context.api != "Fetch" or _has("error_code", context)


def _has(name: str, context: RequestContext) -> bool:
    declared = fields_of(APIS[context.call.api_key].response).get(name)
    return declared is not None and context.version in declared.versions


def _other_correlation_id(frame: bytes) -> bytes:
    """Return a frame with one bit of its correlation id (bytes 4 to 7) flipped."""
    return frame[:7] + bytes((frame[7] ^ 1,)) + frame[8:]
