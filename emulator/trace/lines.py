"""The events of the trace, and how each is written: one function for each kind, and the columns they share."""

from __future__ import annotations

from dataclasses import asdict
from functools import singledispatch
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error
from koordinator.wire.values import value

from ..core.effects import Fact, MemberChanged, OffsetsExpired, RebalanceAvoided, StateChanged, Superseded, TimerFired
from .fault_events import HoldNoted, RuleNoted
from .messages import Line, body_of, client_reason, outcome, who

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.effects import Call


@value
class Connected:
    """A connection was opened."""

    connection: int
    client_host: str


@value
class Disconnected:
    """A connection was closed, by the peer (no reason) or by us."""

    connection: int
    client_host: str
    client_id: str
    reason: str
    empty_fetches: int


@value
class RequestReceived:
    """A request came in. `group_now` is the time of the one group it names; if it names none, the node's.

    `size` is that of its frame in bytes, `weight` what the event takes in memory, roughly (`trace_kept`).
    """

    call: Call
    request: Message
    group_id: str | None
    asked_us: int
    group_now: int
    software: tuple[str, str]
    size: int
    weight: int
    rule_id: str | None = None


@value
class ResponseSent:
    """A response to `asked` went out; `error_code` is the code on the wire, in whichever numbering.

    `fetched`: topic and number of each partition whose records it brings, the first offset, and the one after the last.
    """

    asked: RequestReceived
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
    fetched: tuple[tuple[str, int, int, int], ...] = ()


@value
class NodeChanged:
    """A node was started, stopped, killed, paused, resumed, added or removed."""

    change: str


@value
class LeaderMoved:
    """Somebody moved a partition to a node; `group_id` is the group it was moved for, if it was."""

    topic: str
    partition: int
    before: int
    group_id: str | None


@value
class VerbUsed:
    """Somebody did something from outside Kafka's protocol: `verb` with `arguments`, to a group if it is for one."""

    verb: str
    group_id: str | None
    group_now: int
    arguments: dict[str, object]


@value
class ClockMoved:
    """A group's clock was moved, or runs another way from now on; `cause` is who did it: a lever, or `auto`."""

    group_id: str
    before: int
    after: int
    mode: str
    cause: str


@value
class PuppetChanged:
    """Something happened to a puppet: created, assigned, revoked, lost, stopped or failed. `holds` is after it."""

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


TraceEvent = (
    ResponseSent
    | RequestReceived
    | ClockMoved
    | Connected
    | Disconnected
    | Fact
    | HoldNoted
    | LeaderMoved
    | NodeChanged
    | PuppetChanged
    | RuleNoted
    | VerbUsed
)


def line(seq: int, wall_us: int, happening: TraceEvent, node_id: int) -> Line:
    """The event as a JSON object; columns without a value are left out. Node 0 is none: it is the whole cluster's."""
    # by the table of `singledispatch`: its call looks into a dictionary of weak references first
    columns = {"seq": seq, "wall_ts": wall_us, "node": node_id or None, **_columns.registry[type(happening)](happening)}
    return {name: value for name, value in columns.items() if value is not None}


def group_of(happening: TraceEvent) -> str | None:
    """The group an event concerns, if it is one group."""
    match happening:
        case ResponseSent():
            return happening.asked.group_id
        case Connected() | Disconnected() | NodeChanged():
            return None
        case _:
            return happening.group_id


@singledispatch
def _columns(happening: object) -> Line:
    raise AssertionError(f"no line is written for {type(happening).__name__}")


@_columns.register
def _(happening: Connected) -> Line:
    return {"kind": "conn", "change": "opened", "conn_id": happening.connection, "client_host": happening.client_host}


@_columns.register
def _(happening: Disconnected) -> Line:
    return {
        "kind": "conn",
        "change": "closed",
        "conn_id": happening.connection,
        "client_host": happening.client_host,
        "client_id": happening.client_id,
        "reason": happening.reason or None,
        "empty_fetches": happening.empty_fetches or None,
    }


@_columns.register
def _(happening: NodeChanged) -> Line:
    return {"kind": "node", "change": happening.change}


@_columns.register
def _(happening: VerbUsed) -> Line:
    return {
        "kind": "verb",
        **_group(happening.group_id, happening.group_now),
        "verb": happening.verb,
        "body": happening.arguments or None,
    }


@_columns.register
def _(happening: ClockMoved) -> Line:
    return {
        "kind": "clock",
        "group_id": happening.group_id,
        "group_ts_us": happening.before * 1000,
        "cause": happening.cause,
        "mode": happening.mode,
        "body": {"from_ms": happening.before, "to_ms": happening.after},
    }


@_columns.register
def _(happening: LeaderMoved) -> Line:
    return {
        "kind": "leader",
        "group_id": happening.group_id,
        "body": {"topic": happening.topic, "partition": happening.partition, "before": happening.before},
    }


@_columns.register
def _(happening: PuppetChanged) -> Line:
    return {
        "kind": "puppet",
        "puppet": happening.name,
        "change": happening.change,
        "group_id": happening.group_id,
        "group_ts_us": happening.group_now * 1000,
        "member_id": happening.member_id or None,
        "instance_id": happening.instance_id,
        "generation": happening.generation if happening.generation >= 0 else None,
        "error": happening.error,
        "body": {"behaviour": happening.behaviour, "holds": {name: list(held) for name, held in happening.holds}},
    }


@_columns.register
def _(happening: RuleNoted) -> Line:
    return {"kind": "rule", "rule_id": happening.rule_id, **_hand(happening)}


@_columns.register
def _(happening: HoldNoted) -> Line:
    return {"kind": "hold", "hold_id": happening.hold_id, **_hand(happening)}


def _hand(happening: RuleNoted | HoldNoted) -> Line:
    return {
        "change": happening.change,
        **(_call(happening.call, None) if happening.call is not None else {}),
        "group_id": happening.group_id,
        "group_ts_us": happening.group_now * 1000 if happening.group_now is not None else None,
        "member_id": happening.member_id or None,
        "body": dict(happening.body) or None,
    }


@_columns.register
def _(happening: RequestReceived) -> Line:
    request = happening.request
    return {
        "kind": "request",
        **_call(happening.call, happening.software),
        **who(request),
        **_group(happening.group_id, happening.group_now),
        "client_reason": client_reason(request),
        "rule_id": happening.rule_id,
        "body": body_of(request, happening.size),
    }


@_columns.register
def _(happening: ResponseSent) -> Line:
    asked, request = happening.asked, happening.asked.request
    refused = happening.error is not Error.NONE
    return {
        "kind": "response",
        **_call(asked.call, asked.software),
        **who(request),
        **_group(asked.group_id, happening.group_now),
        **outcome(happening.response),
        "error_code": happening.error_code,
        "error": happening.error.name if refused else None,
        "latency_us": happening.latency_us,
        "empty_fetches": happening.empty_fetches or None,
        "rule_id": happening.rule_id,
        "synthetic": happening.synthetic or None,
        "body": _fetched(happening) or body_of(happening.response, happening.size),
    }


@_columns.register
def _(fact: StateChanged) -> Line:
    return {
        "kind": "state",
        "group_id": fact.group_id,
        "group_ts_us": fact.group_now * 1000,
        "generation": fact.generation,
        "member_id": fact.member_id,
        "state_from": fact.before,
        "state_to": fact.after,
        "cause": fact.cause,
        "reason": fact.reason,
        "client_reason": fact.client_reason,
    }


@_columns.register
def _(fact: MemberChanged) -> Line:
    return {
        "kind": "member",
        "change": fact.change,
        "group_id": fact.group_id,
        "group_ts_us": fact.group_now * 1000,
        "member_id": fact.member_id,
        "instance_id": fact.instance_id,
        "cause": fact.cause,
        "reason": fact.reason,
    }


@_columns.register
def _(fact: RebalanceAvoided) -> Line:
    return {
        "kind": "avoided_static",
        "group_id": fact.group_id,
        "group_ts_us": fact.group_now * 1000,
        "generation": fact.generation,
        "member_id": fact.member_id,
        "instance_id": fact.instance_id,
        "cause": "avoided_static",
        "reason": fact.reason,
    }


@_columns.register
def _(fact: TimerFired) -> Line:
    key = asdict(fact.key)
    return {
        "kind": "timer",
        "timer": type(fact.key).__name__,
        "group_id": fact.group_id,
        "group_ts_us": fact.due * 1000 if fact.group_id is not None else None,
        "member_id": key.pop("member_id", None),
        "generation": key.pop("generation", None),
        "body": key or None,
    }


@_columns.register
def _(fact: Superseded) -> Line:
    return {"kind": "superseded", **_call(fact.call, None), "group_id": fact.group_id, "member_id": fact.member_id}


@_columns.register
def _(fact: OffsetsExpired) -> Line:
    return {
        "kind": "offsets",
        "group_id": fact.group_id,
        "group_ts_us": fact.group_now * 1000,
        "cause": fact.cause,
        "body": {"dropped": [[topic, partition] for topic, partition in fact.partitions]},
    }


# -- the columns they share ----------------------------------------------------------------------------------


def _call(call: Call, software: tuple[str, str] | None) -> Line:
    name, version = software or ("", "")
    return {
        "conn_id": call.connection,
        "correlation_id": call.correlation_id,
        "api": APIS[call.api_key].name,
        "api_key": call.api_key,
        "api_version": call.api_version,
        "client_id": call.client_id,
        "client_software": name or None,
        "client_version": version or None,
    }


def _fetched(happening: ResponseSent) -> Line | None:
    return {"fetched": [list(each) for each in happening.fetched]} if happening.fetched else None


def _group(group_id: str | None, group_now: int) -> Line:
    return {} if group_id is None else {"group_id": group_id, "group_ts_us": group_now * 1000}
