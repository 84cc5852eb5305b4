"""The gatekeeper: the one gate of a cluster, at which holds, lock-steps, rules and disturbances take their turn.

A request meets holds first, and then the others, in this order, when it is let go: so rules look at the group as it is
when the request would be applied, not as it was when it came in. What is to be done later stands in an agenda.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from koordinator.wire.apis import APIS
from koordinator.wire.messages.produce import ProduceRequest
from koordinator.wire.schema import fields_of

from ...broker.interceptor import HangUp, Park, Respond, Serve, Step, Verdict, Write
from ...trace.fault_events import HoldNoted, RuleNoted
from ..seeded_random import between, draw, log_normal
from ..time.scheduler import Scheduler
from ..verbs import Verbs
from .actions import (
    Delay,
    Drip,
    Drop,
    Error,
    Evict,
    Fence,
    LoseReply,
    NeverAnswer,
    Rebalance,
    Throttle,
    Truncate,
    WrongCorrelationId,
    action_data,
)
from .error_responses import PLACES_OF, is_applied, refused, spoilt
from .in_flight import Decision, HoldPoint, InFlightRequest, RuleStats
from .plausible import is_given_by_kafka
from .request_context import RequestContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.apis import Message

    from ...broker.broker import Broker
    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.effects import Call
    from ...trace.lines import RequestReceived, TraceEvent
    from .actions import Action
    from .rules import FaultRule

DISTURBED_MS_MAX = 20
"""The longest delay of a disturbance."""

DISTURBED_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "FindCoordinator")

ON_BYTES = (Truncate, Drip, WrongCorrelationId)
"""What is done to the bytes of an answer; a puppet, which gets none, loses its connection instead."""


class FaultInjector:
    """The gate of a cluster (`emulator.gate`). `seed` decides what is left to chance."""

    def __init__(self, brokers: ClusterRuntime, seed: int) -> None:
        self._brokers = brokers
        self._seed = seed
        self.uses: dict[str, RuleStats] = {}
        """The rules by id, the oldest first."""
        self.stops: dict[str, HoldPoint] = {}
        """The holds and lock-steps by id, the oldest first."""
        self.disturbed_by: int | None = None
        """The seed of the disturbance, if there is one."""
        self._asked: dict[tuple[str, str], int] = {}
        self._fates: dict[int, Decision] = {}
        self._agenda = Scheduler(brokers)
        self._buffer: list[TraceEvent] | None = None
        self._leaving: list[Output] = []
        self._verbs = Verbs(brokers, self._leaving.extend)

    def changed(self) -> None:
        """Rules or holds have come or gone: be asked if there is a reason to be, and otherwise cost nothing."""
        brokers = self._brokers
        has_reason = any((self.uses, self.stops, self.disturbed_by is not None, self._fates, self._agenda))
        brokers.gate = self if has_reason else None
        if has_reason and self._agenda not in brokers.tickers:
            brokers.tickers.append(self._agenda)
        elif not has_reason and self._agenda in brokers.tickers:
            brokers.tickers.remove(self._agenda)

    # -- the gate --------------------------------------------------------------------------------------------

    def asked(self, now: int, broker: Broker, asked: RequestReceived, request: Message) -> Verdict | None:
        """A request has been read."""
        call = asked.call
        sight = RequestContext(self._brokers, broker.node.node_id, call, request)
        self._buffer = []
        steps, fate = self._admit(now, InFlightRequest(broker, call, request, sight))
        notes, self._buffer = tuple(self._buffer), None
        if not notes and len(steps) == 1 and isinstance(steps[0], Serve):
            return None
        return Verdict(steps, None if fate is None else fate.rule_id, notes)

    def answered(self, now: int, broker: Broker, call: Call, response: Message) -> tuple[Step, ...] | None:
        """The answer to a request is ready."""
        del broker
        fate = self._fates.get(call.connection)
        if fate is None or fate.passage.call is not call:
            return None
        return self._answer(now, fate, response)

    def queued(self, now: int, broker: Broker, call: Call) -> None:
        """Something waits behind a request in hand: noted, if that is one that was stopped here."""
        for stop in self.stops.values():
            for passage in stop.inside:
                if passage.call is call:
                    self._note_behind(now, broker, stop, passage)

    def gone(self, now: int, broker: Broker, connection: int) -> None:
        """A connection has closed.

        What a hold has of it is applied all the same when it is let go, as in Kafka a request that is in the queue when
        its client gives up; a lock-step waits for the client's next.
        """
        del now, broker
        self._fates.pop(connection, None)
        for stop in self.stops.values():
            for passage in [each for each in stop.inside if each.call.connection == connection]:
                passage.client_is_gone = True
                if stop.clients:
                    stop.inside.remove(passage)

    # -- a request -------------------------------------------------------------------------------------------

    def _admit(self, now: int, passage: InFlightRequest) -> tuple[tuple[Step, ...], Decision | None]:
        """What becomes of a request that nothing stops any more, or that came in just now."""
        for stop in self.stops.values():
            if stop.takes(passage):
                stop.enter(passage)
                self._note_hold(now, "entered", stop, passage)
                self._complete(now, stop)
                return (Park(),), None
        fate = self._judge(now, passage)
        if fate is None:
            return (Serve(passage.request),), None
        self._fates[passage.call.connection] = fate
        if fate.action("verb") is not None:
            self._agenda.enter(now, 0, lambda at: self._do_verb(at, fate))
            return (Park(),), fate
        return self._serve(now, fate), fate

    def _judge(self, now: int, passage: InFlightRequest) -> Decision | None:
        """Which rules act. Of those that would, the oldest of each slot does; every match counts."""
        rules: dict[str, FaultRule] = {}
        for use in self.uses.values():
            rule, sight = use.rule, passage.sight
            if not rule.match.admits(sight) or not _applies(rule.action, sight):
                continue
            use.matched += 1
            slot = rule.action.slot
            if slot in rules or not rule.trigger.acts(use.matched, use.acted, self._chance(use, "acts")):
                continue
            use.acted += 1
            use.requests.append(passage.data())
            rules[slot] = rule
        disturbed_ms = self._disturbance(passage.sight)
        if not rules and not disturbed_ms:
            return None
        fate = Decision(passage, rules, disturbed_ms=disturbed_ms)
        for rule in rules.values():
            if isinstance(rule.action, Delay):
                fate.delay_ms = self._length_ms(self.uses[rule.id], rule.action)
            self._note_rule(now, "used", rule.id, self._used(rule, fate), passage)
        return fate

    @staticmethod
    def _used(rule: FaultRule, fate: Decision) -> dict[str, object]:
        drawn = isinstance(rule.action, Delay) and rule.action.ms is None
        return {**action_data(rule.action), **({"ms": fate.delay_ms} if drawn else {})}

    def _chance(self, use: RuleStats, what: str) -> float:
        return draw(self._seed, "rule", use.rule.id, use.matched, what)

    def _length_ms(self, use: RuleStats, delay: Delay) -> int:
        if delay.ms is not None:
            return delay.ms
        chance = self._chance(use, "lasts")
        if delay.uniform_ms is not None:
            return between(*delay.uniform_ms, chance)
        assert delay.lognormal_ms is not None, "a delay has one of the three"
        return round(log_normal(*delay.lognormal_ms, chance))

    def _disturbance(self, sight: RequestContext) -> int:
        """How long a request is disturbed: before it is served if negative, else before its answer leaves."""
        if self.disturbed_by is None or sight.api not in DISTURBED_APIS:
            return 0
        name = sight.client_id, sight.api
        self._asked[name] = number = self._asked.get(name, 0) + 1
        ms = between(1, DISTURBED_MS_MAX, draw(self.disturbed_by, "lasts", *name, number))
        # a third each: before, after, not at all
        return ms * (between(0, 2, draw(self.disturbed_by, "when", *name, number)) - 1)

    def _do_verb(self, now: int, fate: Decision) -> list[Output]:
        """Do to the group what a rule wants, and go on with the request; if that cannot be done, the trace says so."""
        try:
            self._act(now, fate)
        except ValueError as error:
            self._note_rule(now, "failed", fate.rules["verb"].id, {"problem": str(error)}, fate.passage)
        outputs = list(self._leaving)
        self._leaving.clear()
        return outputs + self._resume(now, fate.passage, self._serve(now, fate))

    def _act(self, now: int, fate: Decision) -> None:
        sight, action = fate.passage.sight, fate.action("verb")
        group = sight.group
        if group is None:
            raise ValueError(f"this {sight.api} is for no group, or for several: {sight.groups}")
        match action:
            case Evict():
                member = action.member or fate.passage.member_id or sight.client_id
                self._verbs.evict(now, group=group, member=member, as_if=action.as_if)
            case Fence():
                instance = action.instance or next(iter(sight.instance_ids), "")
                self._verbs.fence(now, group=group, instance=instance)
            case Rebalance():
                self._verbs.rebalance(now, group=group, cause=action.cause)
            case _:
                raise AssertionError(f"{action} is no verb")

    def _serve(self, now: int, fate: Decision) -> tuple[Step, ...]:
        """Let the node have the request, or what a rule puts in the place of that."""
        passage, action = fate.passage, fate.action("answer")
        match action:
            case Drop():
                return (HangUp(f"rule {fate.rules['answer'].id}: dropped"),)
            case NeverAnswer(apply=False):
                return (Park(),)
            case Error() if isinstance(passage.request, ProduceRequest) and passage.request.acks == 0:
                return (HangUp(f"rule {fate.rules['answer'].id}: {action.name}, and no answer is wanted"),)
            case Error():
                at = action.at or PLACES_OF[passage.sight.api][0]
                fate.synthetic = not is_given_by_kafka(passage.sight, action.code, at)
                if not is_applied(passage.sight.api):
                    return self._answer(now, fate, refused(passage.call, passage.request, action.code, at))
            case _:
                pass
        if fate.disturbed_ms < 0:
            self._agenda.enter(now, -fate.disturbed_ms, lambda at: self._resume(at, passage, (Serve(passage.request),)))
            return (Park(),)
        return (Serve(passage.request),)

    # -- its answer ------------------------------------------------------------------------------------------

    def _answer(self, now: int, fate: Decision, response: Message) -> tuple[Step, ...]:
        """Let an answer leave, or what rules make of it; later, if it is delayed."""
        action, throttle, delay = fate.action("answer"), fate.action("throttle"), fate.action("delay")
        if isinstance(action, NeverAnswer):
            return (Park(),)
        if isinstance(action, Error) and is_applied(fate.passage.sight.api):
            response = spoilt(response, action.code)
        if isinstance(throttle, Throttle):
            response = replace(cast("Any", response), throttle_time_ms=throttle.ms)
        ms = fate.delay_ms + max(fate.disturbed_ms, 0)
        if not ms:
            return self._leave(now, fate, response)
        in_group_time = isinstance(delay, Delay) and delay.clock == "group"
        self._agenda.enter(
            now,
            ms,
            lambda at: self._resume(at, fate.passage, self._leave(at, fate, response)),
            fate.passage.sight.group if in_group_time else None,
        )
        return (Park(),)

    def _leave(self, now: int, fate: Decision, response: Message) -> tuple[Step, ...]:
        passage, action = fate.passage, fate.action("answer")
        if self._fates.get(passage.call.connection) is fate:
            del self._fates[passage.call.connection]
        if isinstance(action, LoseReply) or (isinstance(action, ON_BYTES) and passage.call.connection < 0):
            return (HangUp(f"rule {fate.rules['answer'].id}: the answer is lost"),)
        whole = Respond(response, fate.rule_id, fate.synthetic)
        match action:
            case Truncate(at):
                cut = replace(whole, alter=lambda frame: frame[:at], ends=False)
                return cut, HangUp(f"rule {fate.rules['answer'].id}: truncated at byte {at}")
            case Drip():
                return (replace(whole, alter=lambda frame: self._drip(now, passage, action, frame), ends=False),)
            case WrongCorrelationId():
                return (replace(whole, synthetic=True, alter=_other_correlation_id),)
            case _:
                return (whole,)

    def _drip(self, now: int, passage: InFlightRequest, drip: Drip, frame: bytes) -> bytes:
        size = drip.piece_bytes
        first, *others = (frame[begin : begin + size] for begin in range(0, len(frame), size))
        for number, piece in enumerate(others, 1):
            self._write_later(now, number * drip.every_ms, passage, Write(piece, ends=number == len(others)))
        if not others:
            self._write_later(now, 0, passage, Write(b""))
        return first

    def _write_later(self, now: int, ms: int, passage: InFlightRequest, write: Write) -> None:
        self._agenda.enter(now, ms, lambda at: self._resume(at, passage, (write,)))

    # -- letting go ------------------------------------------------------------------------------------------

    def let_go(self, now: int, stop: HoldPoint, passages: Iterable[InFlightRequest]) -> list[Output]:
        """Let requests go on that were stopped. Those of clients that have gone are applied, and nothing else."""
        outputs: list[Output] = []
        for passage in passages:
            passage.passed.add(stop.id)
            self._note_hold(now, "released", stop, passage)
            steps: tuple[Step, ...] = (Serve(passage.request),)
            if not passage.client_is_gone:
                steps, _ = self._admit(now, passage)
            outputs += self._resume(now, passage, steps)
        return outputs

    def refuse(self, now: int, stop: HoldPoint, passages: Iterable[InFlightRequest], error: Error) -> list[Output]:
        """Answer requests that were stopped with an error; they are not applied."""
        outputs: list[Output] = []
        for passage in passages:
            self._note_hold(now, "released", stop, passage, {"error": error.name})
            at = error.at or PLACES_OF[passage.sight.api][0]
            synthetic = not is_given_by_kafka(passage.sight, error.code, at)
            response = refused(passage.call, passage.request, error.code, at)
            outputs += self._resume(now, passage, (Respond(response, stop.id, synthetic),))
        return outputs

    def _complete(self, now: int, stop: HoldPoint) -> None:
        """Let a round of a lock-step go when it is complete, in the order that the seed gives."""
        if not stop.clients:
            return
        passages = stop.complete_round()
        if passages:
            stop.rounds += 1
            name = stop.match, stop.rounds
            passages.sort(key=lambda each: draw(self._seed, "lockstep", *name, stop.client_of(each)))
            self._agenda.enter(now, 0, lambda at: self.let_go(at, stop, passages))

    def _resume(self, now: int, passage: InFlightRequest, steps: tuple[Step, ...]) -> list[Output]:
        return self._brokers.resume(now, passage.broker, passage.call, steps)

    # -- the trace -------------------------------------------------------------------------------------------

    def note_stop(self, now: int, change: str, stop: HoldPoint) -> None:
        """A hold was added, or removed."""
        body = {"match": stop.match.data(), **({"clients": list(stop.clients)} if stop.clients else {})}
        group = stop.match.group
        self._note(0, HoldNoted(change, stop.id, group, body, group_now=self._agenda.group_now(now, group)))

    def note_rule(self, now: int, change: str, rule: FaultRule) -> None:
        """A rule was added, or removed."""
        group = rule.match.group
        self._note(0, RuleNoted(change, rule.id, group, rule.data(), group_now=self._agenda.group_now(now, group)))

    def _note_rule(
        self, now: int, change: str, rule_id: str, body: Mapping[str, object], passage: InFlightRequest
    ) -> None:
        group, call = passage.sight.group, passage.call
        noted = RuleNoted(change, rule_id, group, body, call, passage.member_id, self._agenda.group_now(now, group))
        self._note(passage.sight.node_id, noted)

    def _note_hold(
        self, now: int, change: str, stop: HoldPoint, passage: InFlightRequest, body: Mapping[str, object] | None = None
    ) -> None:
        group, call = passage.sight.group, passage.call
        noted = HoldNoted(
            change, stop.id, group, body or {}, call, passage.member_id, self._agenda.group_now(now, group)
        )
        self._note(passage.sight.node_id, noted)

    def _note_behind(self, now: int, broker: Broker, stop: HoldPoint, passage: InFlightRequest) -> None:
        for call, request in broker.behind(passage.call.connection):
            if call.correlation_id not in passage.behind:
                passage.behind.add(call.correlation_id)
                sight = RequestContext(self._brokers, passage.sight.node_id, call, request)
                waiting = InFlightRequest(broker, call, request, sight)
                self._note_hold(now, "behind", stop, waiting, {"behind": passage.call.correlation_id})

    def _note(self, node_id: int, happening: TraceEvent) -> None:
        if self._buffer is None:
            self._brokers.trace.add(self._brokers.trace.now_us(), happening, node_id)
        else:
            self._buffer.append(happening)


def _applies(action: Action, sight: RequestContext) -> bool:
    """Whether an action can be done to this request at all: older answers have no place for it."""
    if isinstance(action, Throttle):
        return _has("throttle_time_ms", sight)
    return not isinstance(action, Error) or sight.api != "Fetch" or _has("error_code", sight)


def _has(name: str, sight: RequestContext) -> bool:
    declared = fields_of(APIS[sight.call.api_key].response).get(name)
    return declared is not None and sight.version in declared.versions


def _other_correlation_id(frame: bytes) -> bytes:
    """A frame with one bit of its correlation id turned, behind the length."""
    return frame[:7] + bytes((frame[7] ^ 1,)) + frame[8:]
