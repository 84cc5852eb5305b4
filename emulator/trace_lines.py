"""How an event of the trace is written: one function for each kind, and the columns they share."""

from __future__ import annotations

from dataclasses import asdict
from functools import singledispatch
from typing import TYPE_CHECKING

from koordinator.emulator.core.effects import (
    Fact,
    MemberChanged,
    OffsetsExpired,
    RebalanceAvoided,
    StateChanged,
    Superseded,
    TimerFired,
)
from koordinator.emulator.trace_levers import HoldNoted, RuleNoted
from koordinator.wire.apis import APIS, Message
from koordinator.wire.errors import Error
from koordinator.wire.messages.connect_protocol import CONNECT, read_worker_assignment
from koordinator.wire.messages.consumer_protocol import read_assignment, read_subscription
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.core.effects import Call

Line = dict[str, object]

BODY_BYTES_MAX = 4 * 1024 * 1024
"""Of a larger message the line has no body, only its size; a list of 10,000 members, for their leader, is smaller."""

GROUP_KEY = 0
"""The type of a key of FindCoordinator that is a group's id."""

WITH_BODY = frozenset(
    {
        JoinGroupRequest,
        JoinGroupResponse,
        SyncGroupRequest,
        SyncGroupResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
    }
)
"""The messages of which a line shows more than the plain fields."""


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
class Asked:
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
class Answered:
    """A response to `asked` went out; `error_code` is the code on the wire, in whichever numbering."""

    asked: Asked
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
    """Something happened to a puppet: it was created, assigned something (`holds`), stopped, or has failed."""

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


Happening = (
    Answered
    | Asked
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


def line(seq: int, wall_us: int, happening: Happening, node_id: int) -> Line:
    """The event as a JSON object; columns without a value are left out. Node 0 is none: it is the whole cluster's."""
    columns = {"seq": seq, "wall_ts": wall_us, "node": node_id or None, **_columns(happening)}
    return {name: value for name, value in columns.items() if value is not None}


def group_of(happening: Happening) -> str | None:
    """The group an event concerns, if it is one group."""
    match happening:
        case Answered():
            return happening.asked.group_id
        case Connected() | Disconnected() | NodeChanged():
            return None
        case _:
            return happening.group_id


def group_of_request(request: Message) -> str | None:
    """The group a request names; None if it names none or several."""
    match request:
        case OffsetFetchRequest():
            return request.groups[0].group_id if len(request.groups) == 1 else None
        case FindCoordinatorRequest():
            keys = request.coordinator_keys or (request.key,)
            return keys[0] if len(keys) == 1 and request.key_type == GROUP_KEY else None
        case _:
            group_id: str | None = getattr(request, "group_id", None)
            return group_id


def error_of(response: Message) -> int:
    """The error of a response: its own, or else the first of its rows'; 0 if all went well."""
    rows: Iterable[int]
    match response:
        case OffsetCommitResponse():
            rows = (row.error_code for topic in response.topics for row in topic.partitions)
        case LeaveGroupResponse():
            rows = (response.error_code, *(row.error_code for row in response.members))
        case OffsetFetchResponse():
            rows = (response.error_code, *(row.error_code for row in response.groups))
        case FindCoordinatorResponse():
            rows = (response.error_code, *(row.error_code for row in response.coordinators))
        case _:
            code: int = getattr(response, "error_code", 0)
            return code
    return next((code for code in rows if code), 0)


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
def _(happening: Asked) -> Line:
    request = happening.request
    return {
        "kind": "request",
        **_call(happening.call, happening.software),
        **_who(request),
        **_group(happening.group_id, happening.group_now),
        "client_reason": _client_reason(request),
        "rule_id": happening.rule_id,
        "body": _body_of(request, happening.size),
    }


@_columns.register
def _(happening: Answered) -> Line:
    asked, request = happening.asked, happening.asked.request
    refused = happening.error is not Error.NONE
    return {
        "kind": "response",
        **_call(asked.call, asked.software),
        **_who(request),
        **_group(asked.group_id, happening.group_now),
        **_outcome(happening.response),
        "error_code": happening.error_code,
        "error": happening.error.name if refused else None,
        "latency_us": happening.latency_us,
        "empty_fetches": happening.empty_fetches or None,
        "rule_id": happening.rule_id,
        "synthetic": happening.synthetic or None,
        "body": _body_of(happening.response, happening.size),
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


def _who(request: Message) -> Line:
    """Member, instance and generation as a request names them."""
    member_id = getattr(request, "member_id", None)
    instance_id = getattr(request, "group_instance_id", None)
    if isinstance(request, LeaveGroupRequest) and len(request.members) == 1:
        member_id, instance_id = request.members[0].member_id, request.members[0].group_instance_id
    generation = getattr(request, "generation_id", getattr(request, "generation_id_or_member_epoch", None))
    return {
        "member_id": member_id or None,
        "instance_id": instance_id,
        "generation": generation,
    }


def _group(group_id: str | None, group_now: int) -> Line:
    return {} if group_id is None else {"group_id": group_id, "group_ts_us": group_now * 1000}


def _outcome(response: Message) -> Line:
    """What a JoinGroup made of the member that asked."""
    if not isinstance(response, JoinGroupResponse):
        return {}
    outcome: Line = {"member_id": response.member_id} if response.member_id else {}
    if response.generation_id >= 0:
        outcome["generation"] = response.generation_id
    return outcome


def _client_reason(request: Message) -> str | None:
    if isinstance(request, JoinGroupRequest):
        return request.reason
    if isinstance(request, LeaveGroupRequest):
        return next((member.reason for member in request.members if member.reason), None)
    return None


def _body_of(message: Message, size: int) -> Line | None:
    if size > BODY_BYTES_MAX and type(message) in WITH_BODY:
        return {"omitted_bytes": size}
    return _body(message)


@singledispatch
def _body(message: object) -> Line | None:
    """What is worth keeping of a message: of joins, syncs, leaves and commits only."""
    del message
    return None


@_body.register
def _(response: FindCoordinatorResponse) -> Line | None:
    nodes = [row.node_id for row in response.coordinators] or [response.node_id]
    return {"coordinator": nodes[0]} if len(nodes) == 1 and nodes[0] >= 0 else None


@_body.register
def _(request: JoinGroupRequest) -> Line:
    return {
        "session_timeout_ms": request.session_timeout_ms,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
        "protocol_type": request.protocol_type,
        "protocols": [protocol.name for protocol in request.protocols],
        **_subscribed(request),
    }


@_body.register
def _(response: JoinGroupResponse) -> Line | None:
    if response.error_code:
        return None
    return {
        "protocol": response.protocol_name,
        "leader": response.leader,
        "members": [member.member_id for member in response.members],
        "skip_assignment": response.skip_assignment or None,
    }


@_body.register
def _(request: SyncGroupRequest) -> Line | None:
    given = {each.member_id: assigned(each.assignment) for each in request.assignments}
    return {"assignments": given} if given else None


@_body.register
def _(response: SyncGroupResponse) -> Line | None:
    if response.error_code:
        return None
    if response.protocol_type == CONNECT:
        return _told_worker(response.assignment)
    return {"assignment": assigned(response.assignment)}


@_body.register
def _(response: LeaveGroupResponse) -> Line | None:
    refused = {row.member_id or row.group_instance_id or "": row.error_code for row in response.members}
    return {"members": refused} if refused else None


@_body.register
def _(request: OffsetCommitRequest) -> Line:
    return {
        "offsets": [
            [topic.name or str(topic.topic_id), row.partition_index, row.committed_offset]
            for topic in request.topics
            for row in topic.partitions
        ]
    }


@_body.register
def _(response: OffsetCommitResponse) -> Line | None:
    refused = [
        [topic.name or str(topic.topic_id), row.partition_index, row.error_code]
        for topic in response.topics
        for row in topic.partitions
        if row.error_code
    ]
    return {"refused": refused} if refused else None


def assigned(assignment: bytes) -> dict[str, list[int]] | None:
    """Topic -> partitions of a consumer's assignment; None if it is not one (empty, or another protocol's)."""
    try:
        return {each.topic: list(each.partitions) for each in read_assignment(assignment).assigned_partitions}
    except Malformed:
        return None


def _told_worker(assignment: bytes) -> Line | None:
    """Connector -> tasks that a worker of Kafka Connect is to start, and to stop; in how many ms to join again."""
    try:
        told = read_worker_assignment(assignment)
    except Malformed:
        return None
    body: Line = {
        "started": {each.connector: list(each.tasks) for each in told.assignment or ()},
        "stopped": {each.connector: list(each.tasks) for each in told.revoked or ()},
    }
    return {**body, "delay_ms": told.delay} if told.delay else body


def _subscribed(request: JoinGroupRequest) -> Line:
    """The topics a consumer wants, and the partitions it says it still owns (KIP-429); by its favourite protocol."""
    try:
        subscription = read_subscription(request.protocols[0].metadata) if request.protocols else None
    except Malformed:
        subscription = None
    if subscription is None:
        return {"topics": None}
    owned = {each.topic: list(each.partitions) for each in subscription.owned_partitions}
    return {"topics": list(subscription.topics), **({"owned": owned} if owned else {})}
