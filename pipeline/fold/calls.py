"""silver/call: every request that names a group, with its response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..frames import select_schema
from ..schema import CALL
from ..silver.trace_lines import converter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from .group_facts import Row

OF_REQUEST = (
    *("trace_id", "group_id", "seq", "wall_us", "group_us", "node", "conn_id", "api", "api_version"),
    *("client_id", "principal", "client_software", "client_version", "instance_id", "generation"),
)
"""The columns of silver/call that are the request's."""

OF_RESPONSE = {
    "answered_seq": "seq",
    "answered_wall_us": "wall_us",
    "answered_group_us": "group_us",
    "error_code": "error_code",
    "synthetic": "synthetic",
}
"""The columns of silver/call that are the response's, with its names of them."""

EXCHANGED = (*OF_REQUEST, "correlation_id", "member_id", "error", "error_code", "rule_id", "synthetic", "body", "kind")
"""The columns of silver/event that a call is made of."""

REQUEST_FIELDS = (
    *("session_timeout_ms", "rebalance_timeout_ms", "protocol_type", "protocols", "topics", "owned", "assignments"),
)
"""Fields of request bodies, besides the offsets."""

RESPONSE_FIELDS = ("protocol", "leader", "members", "skip_assignment", "assignment")
"""Fields of the bodies of successful responses."""

CONVERTERS = {
    each.name: converter(each.kind) for each in CALL.definitions if each.name in (*REQUEST_FIELDS, *RESPONSE_FIELDS)
}

NOWHERE = np.iinfo(np.int64).min
"""Stands for a number that is null."""


class CallPairs:
    """Pairs the requests of one trace with their responses; the events come in parts, in the order of `seq`.

    The response belongs to the last request with the same correlation id.
    """

    def __init__(self) -> None:
        self._waiting: pa.Table | None = None
        """The last event of each correlation id, where that is a request."""

    def answered(self, events: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the calls that another part of the events cannot change, and those of them that are heartbeats.

        Most calls are heartbeats, and have no body.
        """
        is_exchanged = pc.and_(
            pc.is_in(events["kind"], pa.array(["request", "response"])), events["group_id"].is_valid()
        )
        rows = events.select(EXCHANGED).filter(is_exchanged)
        if self._waiting is not None:
            rows = pa.concat_tables([self._waiting, rows])
        requests, following, is_last = _pairs(rows)
        self._waiting = rows.take(np.sort(requests[is_last]))
        return _calls(rows, requests[~is_last], following[~is_last])

    def unanswered(self) -> tuple[pa.Table, pa.Table]:
        """Return the calls that have no response at the end of the trace, as `answered` does."""
        assert self._waiting is not None, "a trace has events"
        return _calls(self._waiting, np.arange(len(self._waiting)), np.full(len(self._waiting), -1))


def _pairs(rows: pa.Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the places of the requests, those of their responses or -1, and whether no event follows the request."""
    groups = rows["group_id"].combine_chunks().dictionary_encode().indices
    of_numbers = (rows[name] for name in ("node", "conn_id", "correlation_id"))
    same = np.array([np.asarray(pc.fill_null(column.cast(pa.int64()), NOWHERE)) for column in (groups, *of_numbers)])
    order = np.lexsort(same)
    same, is_request = same[:, order], pc.equal(rows["kind"], "request").to_numpy()[order]
    is_last = np.ones(len(rows), dtype=bool)
    is_last[:-1] = (same[:, 1:] != same[:, :-1]).any(axis=0)
    is_answered = np.zeros(len(rows), dtype=bool)
    is_answered[:-1] = ~is_last[:-1] & ~is_request[1:]
    following = np.where(is_answered, np.roll(order, -1), -1)
    return order[is_request], following[is_request], is_last[is_request]


def _calls(rows: pa.Table, requests: NDArray[Any], responses: NDArray[Any]) -> tuple[pa.Table, pa.Table]:
    asked = rows.take(requests)
    answer = rows.take(pa.array(responses, mask=responses < 0))
    asked_as, is_answered = _not_empty(asked["member_id"]), answer["kind"].is_valid()
    error = pc.if_else(is_answered, pc.fill_null(answer["error"], "NONE"), None)
    has_joined = pc.and_(pc.equal(asked["api"], "JoinGroup"), pc.equal(error, "NONE"))
    columns = {
        **{name: asked[name] for name in OF_REQUEST},
        **{name: answer[of] for name, of in OF_RESPONSE.items()},
        "asked_as": asked_as,
        "member_id": pc.coalesce(asked_as, _not_empty(answer["member_id"])),
        "formed": pc.if_else(has_joined, answer["generation"], None),
        "error": error,
        "rule_id": pc.coalesce(answer["rule_id"], asked["rule_id"]),
        "request_body": asked["body"],
        "response_body": answer["body"],
    }
    calls = pa.table(columns)
    is_heartbeat = pc.fill_null(pc.equal(calls["api"], "Heartbeat"), False)  # noqa: FBT003 - the value of nulls
    return _with_bodies(calls.filter(pc.invert(is_heartbeat))), select_schema(calls.filter(is_heartbeat), CALL)


def _not_empty(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _with_bodies(calls: pa.Table) -> pa.Table:
    """Return silver/call; the fields of the response only where it has them, after success."""
    fields: list[Row] = []
    for row in calls.select(["api", "error", "request_body", "response_body"]).to_pylist():
        asked = _parsed(row["request_body"])
        has_fields = row["api"] in ("JoinGroup", "SyncGroup") and row["error"] == "NONE"
        answered = _parsed(row["response_body"]) if has_fields else {}
        offsets = {"offsets": _offsets(asked.get("offsets"))}
        fields.append(_fields(asked, REQUEST_FIELDS) | offsets | _fields(answered, RESPONSE_FIELDS))
    for name in (*REQUEST_FIELDS, "offsets", *RESPONSE_FIELDS):
        calls = calls.append_column(name, pa.array([row[name] for row in fields], CALL.arrow.field(name).type))
    return select_schema(calls, CALL)


def _parsed(body: str | None) -> Row:
    try:
        parsed = json.loads(body or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _fields(body: Row, names: Iterable[str]) -> Row:
    """Return the fields that have values of their types; the others are null."""
    found = {}
    for name in names:
        try:
            found[name] = None if body.get(name) is None else CONVERTERS[name](body[name])
        except ValueError:
            found[name] = None
    return found


def _offsets(rows: Any) -> list[Row] | None:  # noqa: ANN401 - a value of JSON
    try:
        return None if rows is None else [
            {"topic": str(topic), "partition": int(partition), "offset": int(offset)}
            for topic, partition, offset, *_ in rows
        ]  # fmt: skip
    except (TypeError, ValueError):
        return None
