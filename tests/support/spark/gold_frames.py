"""Gold tables for tests, from the lines of a trace or of a `Tale`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scenes.trace_tales import Tale

from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.pipeline import layers, schema
from koordinator.pipeline.fold.frames import FOLD, folded
from koordinator.pipeline.frames import rows_of, table_of, with_constants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from koordinator.pipeline.queries import Row

RENAMED = {"wall_ts": "wall_us", "group_ts_us": "group_us", "verb": "name", "puppet": "name", "hold_id": "name"}
"""Keys of a line with another name in the table."""


class Tales:
    """Tales that are computed together, one trace each: `tales.told` beside a function of a Tale adds it under its
    name.
    """

    def __init__(self) -> None:
        self._tales: dict[str, Callable[[Tale], None]] = {}

    def told(self, tell: Callable[[Tale], None]) -> str:
        """Add a tale and return its name."""
        self._tales[tell.__name__] = tell
        return tell.__name__

    def gold(self) -> Gold:
        """Return the tables of all tales."""
        traces = {}
        for name, tell in self._tales.items():
            tell(tale := Tale())
            traces[name] = tale.lines
        return Gold(traces)


def of(rows: Iterable[Row], trace_id: str) -> list[Row]:
    """Return the rows of one trace."""
    return [row for row in rows if row.trace_id == trace_id]


class Gold:
    """The tables of some traces, as rows; each table and its inputs are computed once, as in a load."""

    def __init__(self, traces: Mapping[str, Iterable[dict[str, Any]]]) -> None:
        self._lines = {name: [line for line in lines if line["kind"] != "header"] for name, lines in traces.items()}
        events = [{"trace_id": name} | _event(line) for name, lines in self._lines.items() for line in lines]
        headers = [{"trace_id": name, "run_id": "r", "test_id": f"test_{name}", "cluster": "c"} for name in self._lines]
        self._made = {
            schema.EVENT.path: table_of(events, schema.EVENT),
            schema.HEADER.path: table_of(headers, schema.HEADER),
            # nothing was loaded before
            schema.GROUP_STATE.path: table_of([], schema.GROUP_STATE),
        }

    def rows(self, table: schema.Table) -> list[Row]:
        """Return the rows of a table ordered by its key, which is unique."""
        found = rows_of(self.table(table))
        keys = [tuple(row[name] for name in table.key) for row in found]
        assert len(set(keys)) == len(keys), f"{table.path}: rows with the same key"
        return [found[at] for at in sorted(range(len(found)), key=lambda at: keys[at])]

    def stories(self) -> dict[tuple[str, str], GroupTrace]:
        """Return the same lines as the emulator reads them, by trace and group."""
        named = {
            (name, str(line["group_id"])): lines
            for name, lines in self._lines.items()
            for line in lines
            if line.get("group_id")
        }
        return {key: GroupTrace(lines, key[1]) for key, lines in named.items()}

    def table(self, table: schema.Table) -> pa.Table:
        """Return a table."""
        if table.path not in self._made:
            step = next(step for step in layers.PER_HOME_STEPS if step.table is table)
            made = step.build(*(with_constants(self.table(source), home="text-1") for source in step.inputs))
            self._made[table.path] = folded(made) if table is FOLD else made.select(table.names)
        return self._made[table.path]


def _event(line: dict[str, Any]) -> dict[str, Any]:
    row = {RENAMED.get(name, name): value for name, value in line.items()}
    body = row.get("body")
    return row | {"body": None if body is None else json.dumps(body)}
