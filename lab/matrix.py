"""The matrix: schemes and situations under one load, as text and as JSON data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from .cells import Cell, play_seeds
from .figures import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .cells import Result
    from .load import Load

Grid = list[list[str]]
"""Rows of a table, the heading first; the first column is left-aligned."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure in a table: its heading, its unit, and the number of its units that one of the table's has."""

    heading: str
    unit: str = ""
    scale: float = 1

    def text(self, number: float | None) -> str:
        """Return a figure as the table shows it."""
        if number is None:
            return "never"
        scaled = number / self.scale
        return f"{scaled:,.0f}" if float(scaled).is_integer() or abs(scaled) >= 1000 else f"{scaled:,.1f}"  # noqa: PLR2004


COLUMNS = {
    "rebalances": Column("rebalances"),
    "notifications": Column("notified"),
    "requests": Column("requests"),
    "message_bytes": Column("traffic", "kB", 1000),
    "balance_s": Column("balanced after", "s"),
    "stopped_s": Column("stopped", "member-s"),
    "idle_s": Column("idle", "partition-s"),
    "doubled_s": Column("doubled", "partition-s"),
    "moved": Column("moved"),
    "moved_least": Column("least"),
    "reprocessed": Column("reprocessed", "records"),
    "restored_bytes": Column("restored", "GB", 1e9),
    "restore_s": Column("restoring", "s"),
    "peak_members": Column("members"),
    "peak_bytes": Column("memory", "B"),
}
"""The figures in the order of tables."""

assert list(COLUMNS) == [each.name for each in fields(Figures)]

SHOWN = (
    "rebalances",
    "balance_s",
    "stopped_s",
    "idle_s",
    "doubled_s",
    "moved",
    "moved_least",
    "reprocessed",
    "requests",
)
"""The columns of the table on a terminal."""


def play_matrix(
    schemes: Iterable[str], situations: Sequence[str], load: Load, seeds: int = 1, played: Callable[[Cell], Any] = id
) -> Iterator[Result]:
    """Play every situation under every scheme, and call `played` after each cell."""
    for scheme in schemes:
        for situation in situations:
            cell = Cell(scheme, situation, load)
            result = play_seeds(cell, seeds)
            played(cell)
            yield result


def plain(results: Sequence[Result]) -> dict[str, object]:
    """Return a matrix, whose cells have one load, as JSON data."""
    return {"load": asdict(results[0].cell.load), "cells": [each.plain() for each in results]}


def by_situation(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the results of each situation."""
    grouped: dict[str, list[Result]] = {}
    for result in results:
        grouped.setdefault(result.cell.situation, []).append(result)
    return grouped


def heading(name: str) -> str:
    """Return a figure's heading with its unit."""
    column = COLUMNS[name]
    return f"{column.heading} ({column.unit})" if column.unit else column.heading


def situation_table(situation: str, results: Sequence[Result], names: Sequence[str] = SHOWN) -> Grid:
    """Return the figures of the schemes in one situation."""
    rows = [[each.cell.scheme, *(COLUMNS[name].text(each.mean(name)) for name in names)] for each in results]
    return [[situation, *map(heading, names)], *rows]


def figure_table(name: str, results: Iterable[Result]) -> Grid:
    """Return one figure of every scheme in every situation."""
    grouped = by_situation(results)
    schemes = list(dict.fromkeys(each.cell.scheme for of in grouped.values() for each in of))
    rows = [[situation, *(COLUMNS[name].text(each.mean(name)) for each in of)] for situation, of in grouped.items()]
    return [[heading(name), *schemes], *rows]


def aligned(grid: Grid) -> str:
    """Return a table as text."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in grid
    )
