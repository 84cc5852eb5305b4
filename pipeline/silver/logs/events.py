"""Events of log lines: one for most lines, several for some."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import server_log

if TYPE_CHECKING:
    from .patterns import Fields

Event = dict[str, Any]
"""An event by the columns of silver/event; missing columns are null."""

_TEXTS = (
    *("kind", "change", "timer", "group_id", "client_id", "member_id", "instance_id", "state_from", "state_to"),
    *("cause", "reason", "client_reason", "api", "error"),
)
_INT_MAX = 2**31 - 1

PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


def events_of(fields: Fields, message: str) -> list[Event]:
    """Return the events of a line, in order, without times. Without a reason the whole message is the reason."""
    event: Event = {name: fields[name] for name in _TEXTS if name in fields}
    event["generation"] = _int(fields.get("generation"))
    body = {name: n for name in ("n_members", "n_static") if (n := _int(fields.get(name))) is not None}
    if "n_members" in body:
        event["body"] = _json(body)
    if fields["kind"] == "client":
        return [event]
    event["client_reason"] = server_log.given(fields.get("client_reason"))
    event.setdefault("reason", message)
    if fields.get("state_to") == "Reconciling":
        return _target(event, fields["assignor"])
    if fields.get("state_to") == PREPARING:
        return _start(event)
    members = fields["members"].split(", ") if "members" in fields else [event.get("member_id")]
    return [event | {"member_id": member} for member in members]


def _start(event: Event) -> list[Event]:
    """Return the start of a rebalance; before it the members that it adds or removes."""
    reason = event["reason"]
    event |= {
        "cause": server_log.cause(reason),
        "member_id": server_log.trigger(reason),
        "instance_id": server_log.instance(reason),
        "client_reason": server_log.client_reason(reason),
    }
    member = {name: event.get(name) for name in ("group_id", "reason", "client_reason")} | {"kind": "member"}
    removed = [
        member | {"change": "removed", "cause": "sync_timeout", "member_id": name}
        for name in server_log.removed(reason)
    ]
    if event["cause"] == "member_join":
        names = {name: event[name] for name in ("member_id", "instance_id")}
        return [member | names | {"change": "added", "cause": "member_join"}, event]
    return [*removed, event]


def _target(event: Event, assignor: str) -> list[Event]:
    """Return the target of a consumer group; when its members have it is not logged."""
    reconciling = event | {"body": _json({"assignor": assignor})}
    return [reconciling, event | {"state_from": "Reconciling", "state_to": STABLE}]


def whole_rebalance(fields: Fields) -> list[Event]:
    """Return the start and the two ends of a rebalance that DMS logs at its end; only the last one has a group time."""
    (started,) = (event for event in events_of(fields, "") if event["kind"] == "state")
    body, generation = started.pop("body", None), started["generation"]
    names = ("kind", "group_id", "reason", "client_reason", "instance_id")
    ended = {name: started.get(name) for name in names}
    ended |= {"generation": None if generation is None else generation + 1, "body": body}
    joined = ended | {"cause": "joined", "state_from": PREPARING, "state_to": COMPLETING}
    assigned = ended | {"cause": "assigned", "state_from": COMPLETING, "state_to": STABLE}
    return [started, joined, assigned | {"member_id": fields.get("new_member_id")}]


def _int(text: str | None) -> int | None:
    return int(text) if text and len(text) <= len(str(_INT_MAX)) and int(text) <= _INT_MAX else None


def _json(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))
