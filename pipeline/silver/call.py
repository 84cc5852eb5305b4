"""silver/call: every request that names a group, with its response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..frames import mapped, sql, union
from ..schema import CALL
from .trace_lines import converter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..frames import Frame
    from .trace_lines import Row

REQUEST_FIELDS = (
    *("session_timeout_ms", "rebalance_timeout_ms", "protocol_type", "protocols", "topics", "owned", "assignments"),
)
"""Fields of request bodies, besides the offsets."""

RESPONSE_FIELDS = ("protocol", "leader", "members", "skip_assignment", "assignment")
"""Fields of the bodies of successful responses."""

CONVERTERS = {
    each.name: converter(each.kind) for each in CALL.definitions if each.name in (*REQUEST_FIELDS, *RESPONSE_FIELDS)
}

CALLS = """
    WITH exchanged AS (
      SELECT *, kind = 'request' AS is_request, lead(kind) OVER same = 'response' AS has_response,
             lead(seq) OVER same AS next_seq, lead(wall_us) OVER same AS next_wall_us,
             lead(group_us) OVER same AS next_group_us, lead(member_id) OVER same AS next_member_id,
             lead(generation) OVER same AS next_generation, lead(error) OVER same AS next_error,
             lead(error_code) OVER same AS next_error_code, lead(rule_id) OVER same AS next_rule_id,
             lead(synthetic) OVER same AS next_synthetic{next_body}
      FROM silver.event WHERE kind IN ('request', 'response') AND group_id IS NOT NULL AND {is_chosen}
      WINDOW same AS (PARTITION BY trace_id, group_id, node, conn_id, correlation_id ORDER BY seq)),
    paired AS (
      SELECT *, CASE WHEN has_response THEN coalesce(next_error, 'NONE') END AS answer_error
      FROM exchanged WHERE is_request)
    SELECT trace_id, group_id, seq, wall_us, group_us, CASE WHEN has_response THEN next_seq END AS answered_seq,
           CASE WHEN has_response THEN next_wall_us END AS answered_wall_us,
           CASE WHEN has_response THEN next_group_us END AS answered_group_us, node, conn_id, api, api_version,
           client_id, principal, client_software, client_version, nullif(member_id, '') AS asked_as,
           coalesce(nullif(member_id, ''), CASE WHEN has_response THEN nullif(next_member_id, '') END) AS member_id,
           instance_id, generation,
           CASE WHEN api = 'JoinGroup' AND answer_error = 'NONE' THEN next_generation END AS formed,
           answer_error AS error, CASE WHEN has_response THEN next_error_code END AS error_code,
           coalesce(CASE WHEN has_response THEN next_rule_id END, rule_id) AS rule_id,
           CASE WHEN has_response THEN next_synthetic END AS synthetic{bodies}
    FROM paired
"""

BODIES = """, body AS request_body,
           CASE WHEN api IN ('JoinGroup', 'SyncGroup') AND answer_error = 'NONE' THEN next_body END AS response_body"""


def call(event: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return silver/call. The response belongs to the last request with the same correlation id.

    Heartbeats are the majority and have no body. They get their own files, sorted by error, so that queries for other
    APIs or for refused heartbeats skip the rest.
    """
    of_heartbeats = CALLS.format(next_body="", is_chosen="api = 'Heartbeat'", bodies="")
    of_others = CALLS.format(
        next_body=", lead(body) OVER same AS next_body", is_chosen="coalesce(api, '') != 'Heartbeat'", bodies=BODIES
    )
    heartbeats = sql(of_heartbeats, CALL, silver_event=event)
    if not isinstance(heartbeats, pa.Table):
        heartbeats = heartbeats.sortWithinPartitions("error")
    return union([heartbeats, mapped(sql(of_others, silver_event=event), _with_bodies, CALL)])


def _with_bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = batch.to_pylist()
        for row in rows:
            asked, answered = _parsed(row["request_body"]), _parsed(row["response_body"])
            row.update(_fields(asked, REQUEST_FIELDS), offsets=_offsets(asked.get("offsets")))
            row.update(_fields(answered, RESPONSE_FIELDS))
        yield pa.RecordBatch.from_pylist(rows, CALL.arrow)


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
