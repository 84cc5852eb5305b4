"""Rows of silver/event as lines of a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..silver.trace_rows import RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from koordinator.trace.exchanges import Line


TIMEOUTS = ("session_timeout_ms", "rebalance_timeout_ms", "heartbeat_interval_ms")
"""The fields of bodies that checks compute with; Kafka's are 32-bit integers."""

INT32_BITS = 32


def trace_lines(events: pa.Table) -> Iterator[Line]:
    """Return the events as trace lines: by the names of a trace, without nulls, and with a parsed body."""
    names = [RENAMED.get(name, name) for name in events.column_names]
    for values in zip(*(column.to_pylist() for column in events.columns), strict=True):
        line = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        if "body" in line:
            line["body"] = parsed_body(line["body"])
        yield line


def parsed_body(body: str) -> Line:
    """Return a body without timeouts that Kafka could not have; an invalid body is empty."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    if not isinstance(parsed, dict):
        return {}
    for name in TIMEOUTS:
        if name in parsed and not _is_int32(parsed[name]):
            del parsed[name]
    return parsed


def _is_int32(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() < INT32_BITS
