"""The JSON lines of the trace: one case for each event, and the columns that they share."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, assert_never

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error

from ..core.acls.acl import ANONYMOUS
from ..core.data.share.facts import DeadLettersWritten, LocksEnded, RecordsArchived
from ..core.groups.facts import (
    MemberChanged,
    MemberReconciled,
    OffsetsExpired,
    PendingOffsetsDecided,
    RebalanceAvoided,
    StateChanged,
    Superseded,
    TargetComputed,
)
from ..core.timers import TimerFired
from ..core.transactions.facts import TransactionChanged
from .events import (
    WHOLE_CLUSTER,
    ClockMoved,
    Connected,
    Disconnected,
    FaultEvent,
    LeaderMoved,
    LoopLagged,
    NodeChanged,
    PuppetChanged,
    RequestReceived,
    ResponseSent,
    VerbUsed,
)
from .messages import Line, assigned, body_of, client_reason, join_columns, sender_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.effects import Call
    from .events import TraceEvent
    from .messages import TopicName


def line(seq: int, wall_us: int, event: TraceEvent, node_id: int, topic_name: TopicName) -> Line:
    """Return an event as a JSON object, without columns that have no value. `WHOLE_CLUSTER` stands for every node."""
    node = None if node_id == WHOLE_CLUSTER else node_id
    columns = {"seq": seq, "wall_ts": wall_us, "node": node, **_columns(event, topic_name)}
    return {name: value for name, value in columns.items() if value is not None}


def _columns(event: TraceEvent, topic_name: TopicName) -> Line:  # noqa: C901, PLR0912 - one case for each event
    match event:
        case RequestReceived():
            request = event.request
            return {
                "kind": "request",
                **_call_columns(event.call, event.software),
                **sender_columns(request),
                **_group_columns(event.group_id, event.group_now),
                "client_reason": client_reason(request),
                "rule_id": event.rule_id,
                "body": body_of(request, event.size, topic_name),
            }
        case ResponseSent():
            received = event.received
            return {
                "kind": "response",
                **_call_columns(received.call, received.software),
                **sender_columns(received.request),
                **_group_columns(received.group_id, event.group_now),
                **join_columns(event.response),
                "error_code": event.error_code,
                "error": None if event.error is Error.NONE else event.error.name,
                "latency_us": event.latency_us,
                "empty_fetches": event.empty_fetches or None,
                "rule_id": event.rule_id,
                "synthetic": event.synthetic or None,
                "body": _with_throttle(event, event.body or body_of(event.response, event.size, topic_name)),
            }
        case Connected():
            return {"kind": "conn", "change": "opened", "conn_id": event.connection, "client_host": event.client_host}
        case Disconnected():
            return {
                "kind": "conn",
                "change": "closed",
                "conn_id": event.connection,
                "client_host": event.client_host,
                "client_id": event.client_id,
                "reason": event.reason or None,
                "empty_fetches": event.empty_fetches or None,
            }
        case LoopLagged():
            return {"kind": "lag", "body": {"lag_ms": event.lag_ms}}
        case NodeChanged():
            return {"kind": "node", "change": event.change}
        case VerbUsed():
            return {
                "kind": "verb",
                **_group_columns(event.group_id, event.group_now),
                "verb": event.verb,
                "body": event.arguments or None,
            }
        case ClockMoved():
            return {
                "kind": "clock",
                **_group_columns(event.group_id, event.before),
                "cause": event.cause,
                "mode": event.mode,
                "body": {"from_ms": event.before, "to_ms": event.after},
            }
        case LeaderMoved():
            return {
                "kind": "leader",
                "group_id": event.group_id,
                "body": {"topic": event.topic, "partition": event.partition, "before": event.before},
            }
        case PuppetChanged():
            return {
                "kind": "puppet",
                "puppet": event.name,
                "change": event.change,
                **_group_columns(event.group_id, event.group_now),
                "member_id": event.member_id or None,
                "instance_id": event.instance_id,
                "generation": event.generation if event.generation >= 0 else None,
                "error": event.error,
                "body": {"behaviour": event.behaviour, "holds": {name: list(held) for name, held in event.holds}},
            }
        case FaultEvent():
            return {
                "kind": event.kind,
                f"{event.kind}_id": event.fault_id,
                "change": event.change,
                **(_call_columns(event.call, None) if event.call is not None else {}),
                "group_id": event.group_id,
                "group_ts_us": event.group_now * 1000 if event.group_now is not None else None,
                "member_id": event.member_id or None,
                "body": dict(event.body) or None,
            }
        case StateChanged():
            return {
                "kind": "state",
                **_group_columns(event.group_id, event.group_now),
                "generation": event.generation,
                "member_id": event.member_id,
                "state_from": event.before,
                "state_to": event.after,
                "cause": event.cause,
                "reason": event.reason,
                "client_reason": event.client_reason,
            }
        case MemberChanged():
            return {
                "kind": "member",
                "change": event.change,
                **_group_columns(event.group_id, event.group_now),
                "member_id": event.member_id,
                "instance_id": event.instance_id,
                "cause": event.cause,
                "reason": event.reason,
                "body": {"assignment": assigned(event.assignment)} if event.assignment else None,
            }
        case TargetComputed():
            return {
                "kind": "target",
                **_group_columns(event.group_id, event.group_now),
                "generation": event.epoch,
                "body": {"assignor": event.assignor, "assignments": _nested(event.target)},
            }
        case MemberReconciled():
            return {
                "kind": "reconciliation",
                "change": event.state,
                **_group_columns(event.group_id, event.group_now),
                "generation": event.epoch,
                "member_id": event.member_id,
                "instance_id": event.instance_id,
                "body": {"assigned": _listed(event.assigned), "revoking": _listed(event.revoking)},
            }
        case RebalanceAvoided():
            return {
                "kind": "avoided_static",
                **_group_columns(event.group_id, event.group_now),
                "generation": event.generation,
                "member_id": event.member_id,
                "instance_id": event.instance_id,
                "cause": "avoided_static",
                "reason": event.reason,
            }
        case TimerFired():
            key = asdict(event.key)
            return {
                "kind": "timer",
                "timer": type(event.key).__name__,
                **_group_columns(event.group_id, event.due),
                "member_id": key.pop("member_id", None),
                "generation": key.pop("generation", None),
                "body": key or None,
            }
        case Superseded():
            return {
                "kind": "superseded",
                **_call_columns(event.call, None),
                "group_id": event.group_id,
                "member_id": event.member_id,
            }
        case OffsetsExpired():
            return {
                "kind": "offsets",
                **_group_columns(event.group_id, event.group_now),
                "cause": event.cause,
                "body": {"dropped": list(map(list, event.partitions))},
            }
        case PendingOffsetsDecided():
            outcome = "committed" if event.is_commit else "dropped"
            return {
                "kind": "offsets",
                **_group_columns(event.group_id, event.group_now),
                "cause": f"transaction_{'committed' if event.is_commit else 'aborted'}",
                "body": {"producer_id": event.producer_id, outcome: list(map(list, event.offsets))},
            }
        case LocksEnded():
            return {
                "kind": "locks",
                **_group_columns(event.group_id, event.group_now),
                "member_id": event.member_id,
                "cause": event.cause,
                "body": {"ended": list(map(list, event.records))},
            }
        case RecordsArchived():
            return {
                "kind": "archived",
                **_group_columns(event.group_id, event.group_now),
                "member_id": event.member_id,
                "cause": "delivered_too_often",
                "body": {"archived": list(map(list, event.records))},
            }
        case DeadLettersWritten():
            return {
                "kind": "dead_letters",
                **_group_columns(event.group_id, event.group_now),
                "cause": event.cause,
                "body": {
                    "dead": [event.topic, event.partition, event.first, event.last, event.deliveries],
                    "written_to": event.written_to,
                    "problem": event.problem or None,
                },
            }
        case TransactionChanged():
            return {
                "kind": "transaction",
                "state_from": event.before,
                "state_to": event.after,
                "cause": event.cause,
                "client_id": event.client_id or None,
                "body": {
                    "transactional_id": event.transactional_id,
                    "producer_id": event.producer_id,
                    "producer_epoch": event.epoch,
                    "partitions": list(map(list, event.partitions)),
                },
            }
        case _:
            assert_never(event)


def _listed(partitions: Mapping[str, tuple[int, ...]]) -> dict[str, list[int]]:
    return {topic: list(numbers) for topic, numbers in partitions.items()}


def _nested(target: Mapping[str, Mapping[str, tuple[int, ...]]]) -> dict[str, dict[str, list[int]]]:
    return {member_id: _listed(partitions) for member_id, partitions in target.items()}


# -- shared columns ------------------------------------------------------------------------------------------


def _call_columns(call: Call, software: tuple[str, str] | None) -> Line:
    name, version = software or ("", "")
    return {
        "conn_id": call.connection,
        "correlation_id": call.correlation_id,
        "api": APIS[call.api_key].name,
        "api_key": call.api_key,
        "api_version": call.api_version,
        "client_id": call.client_id,
        "principal": None if call.principal in {"", ANONYMOUS} else call.principal,
        "client_software": name or None,
        "client_version": version or None,
    }


def _with_throttle(event: ResponseSent, body: Line | None) -> Line | None:
    throttle_ms = getattr(event.response, "throttle_time_ms", 0)
    return {**(body or {}), "throttle_time_ms": throttle_ms} if throttle_ms else body


def _group_columns(group_id: str | None, group_now: int) -> Line:
    return {} if group_id is None else {"group_id": group_id, "group_ts_us": group_now * 1000}
