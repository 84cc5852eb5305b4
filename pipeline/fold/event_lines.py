"""Rows of silver/event as lines of a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..silver.trace_rows import RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from koordinator.emulator.verify.group_trace import Line


def trace_lines(events: pa.Table) -> Iterator[Line]:
    """Return the events as trace lines: by the names of a trace, without nulls, and with a parsed body."""
    names = [RENAMED.get(name, name) for name in events.column_names]
    for values in zip(*(column.to_pylist() for column in events.columns), strict=True):
        line = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        if "body" in line:
            line["body"] = parsed_body(line["body"])
        yield line


def parsed_body(body: str) -> Line:
    """Return a body; an invalid one is empty."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
