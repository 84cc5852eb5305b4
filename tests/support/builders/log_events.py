"""The events of log lines, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.pipeline.silver.logs.reader import LogLine, LogReader

if TYPE_CHECKING:
    from collections.abc import Iterable


class Row(dict[str, Any]):
    """An event, or a line that was not understood, with its columns as attributes; missing columns are None."""

    def __getattr__(self, name: str) -> Any:
        """Return a column."""
        return self.get(name)

    def __missing__(self, name: str) -> None:
        """Return None for a missing column."""


def read_lines(lines: Iterable[str], time_zone: str = "UTC", client: str | None = None) -> tuple[list[Row], LogReader]:
    """Return the events and the bad lines of one file, by `seq`, and its reader."""
    reader, rows = LogReader(time_zone, client), []
    for number, raw in enumerate(lines):
        line: LogLine = reader.read(raw)
        rows += [Row(event, raw=raw, row_id=number) for event in line.events]
        if line.unread == "bad_line":
            rows.append(Row(raw=raw, row_id=number, reject_reason="bad_line", detail=line.detail))
    for row in rows:
        row["group_id"] = reader.group_of(row)
    return sorted(rows, key=lambda row: row.seq or 0), reader
