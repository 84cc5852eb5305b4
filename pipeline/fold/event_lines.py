"""Rows of silver/event as lines of a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..silver.trace_lines import RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.trace.exchanges import Line


TIMEOUTS = ("session_timeout_ms", "rebalance_timeout_ms", "heartbeat_interval_ms")
"""The fields of bodies that checks compute with; Kafka's are 32-bit integers."""

INT32_BITS = 32


def trace_lines(events: pa.Table) -> Iterator[Line]:
    """Return the events as trace lines: by the names of a trace, without nulls, and with a parsed body.

    Lines share equal texts and bodies.
    """
    names = [RENAMED.get(name, name) for name in events.column_names]
    columns = [_values(name, events[name]) for name in events.column_names]
    for values in zip(*columns, strict=True):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_string(column.type):
        return list(column.to_pylist())
    encoded = column.dictionary_encode().unify_dictionaries()
    texts: list[Any] = [text for chunk in encoded.chunks[:1] for text in chunk.dictionary.to_pylist()]
    texts = [*(map(parsed_body, texts) if name == "body" else texts), None]
    return [texts[-1 if at is None else at] for chunk in encoded.chunks for at in chunk.indices.to_pylist()]


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
