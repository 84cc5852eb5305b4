"""Trace lines as rows of silver/event, without files, for tests of the later layers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from koordinator.pipeline.fold.frames import fold_input, folded, unfolded
from koordinator.pipeline.frames import with_constants
from koordinator.pipeline.schema import EVENT, GROUP_STATE, TRACE, VERDICT, Table
from spark.gold_frames import RENAMED
from spark.literal_frames import literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa


def events(traces: Mapping[str, Iterable[Mapping[str, Any]]]) -> pa.Table:
    """Return silver/event of these lines by trace id, without the headers."""
    return literal(
        None,
        EVENT,
        *(
            row(line) | {"trace_id": trace_id}
            for trace_id, lines in traces.items()
            for line in lines
            if line.get("kind") != "header"
        ),
        source="koordinator",
    )


def verdicts(traces: Mapping[str, Iterable[Mapping[str, Any]]]) -> pa.Table:
    """Return mart/verdict of these lines."""
    return table_of_fold(VERDICT, events(traces))


def table_of_fold(table: Table, event: pa.Table) -> pa.Table:
    """Return a table that the fold makes of silver/event."""
    traces = trace_rows(*{*event["trace_id"].to_pylist()})
    return unfolded(table, folded(fold_input(event, with_constants(traces, home="text-1"), literal(None, GROUP_STATE))))


def trace_rows(*trace_ids: str) -> pa.Table:
    """Return silver/trace of these traces, all in one run."""
    return literal(None, TRACE, *({"trace_id": trace_id} for trace_id in trace_ids), run_id="run")


def row(line: Mapping[str, Any]) -> dict[str, Any]:
    named = {RENAMED.get(name, name): value for name, value in line.items()}
    body = named.get("body")
    named["body"] = None if body is None else json.dumps(body)
    return {name: value for name, value in named.items() if name in EVENT.names}
