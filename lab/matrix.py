"""The matrix: schemes and situations under one load, as text and as JSON data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from .cells import Cell, play_seeds
from .figures import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .cells import CellResult
    from .load import Load

Grid = list[list[str]]
"""Rows of a table, the heading first; the first column is left-aligned."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure in a table: heading, meaning, unit, and the number of its units that one of the table's has."""

    heading: str
    meaning: str
    unit: str = ""
    scale: float = 1

    def text(self, number: float | None) -> str:
        """Return a figure as the table shows it."""
        if number is None:
            return "never"
        scaled = number / self.scale
        return f"{scaled:,.0f}" if float(scaled).is_integer() or abs(scaled) >= 1000 else f"{scaled:,.1f}"  # noqa: PLR2004


COLUMNS = {
    "rebalances": Column(
        "rebalances", "generations of the group; without a coordinator, the most rebalances of a member"
    ),
    "notifications": Column("notified", "messages that announced a rebalance, or a change that may need one"),
    "requests": Column("requests", "everything sent to the coordinator, or to ZooKeeper"),
    "message_bytes": Column("traffic", "bytes of requests and responses", "kB", 1000),
    "balance_s": Column(
        "balanced after", "from the first disturbance to the last change of an owner; never: a partition has none", "s"
    ),
    "stopped_s": Column("stopped", "running members that have owned partitions own none", "member-s"),
    "idle_s": Column("idle", "no member processes the partition", "partition-s"),
    "doubled_s": Column("doubled", "two members process the partition", "partition-s"),
    "moved": Column("moved", "changes of owners"),
    "moved_least": Column("least", "the fewest changes of owners that lead from the first owners to a balanced group"),
    "reprocessed": Column(
        "reprocessed", "records processed again, because their offsets were not committed", "records"
    ),
    "restored_bytes": Column("restored", "state that new owners fetch", "GB", 1e9),
    "restore_s": Column("restoring", "the longest time that a member needs to fetch state", "s"),
    "peak_members": Column("members", "the most members in the coordinator's memory"),
    "peak_bytes": Column("memory", "the most bytes of ids and subscriptions in the coordinator's memory", "B"),
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
) -> Iterator[CellResult]:
    """Play every situation under every scheme, and call `played` after each cell."""
    for scheme in schemes:
        for situation in situations:
            cell = Cell(scheme, situation, load)
            result = play_seeds(cell, seeds)
            played(cell)
            yield result


def plain(results: Sequence[CellResult]) -> dict[str, object]:
    """Return a matrix, whose cells have one load, as JSON data."""
    return {"load": asdict(results[0].cell.load), "cells": [each.plain() for each in results]}


def by_situation(results: Iterable[CellResult]) -> dict[str, list[CellResult]]:
    """Return the results of each situation."""
    grouped: dict[str, list[CellResult]] = {}
    for result in results:
        grouped.setdefault(result.cell.situation, []).append(result)
    return grouped


def heading(name: str) -> str:
    """Return a figure's heading with its unit."""
    column = COLUMNS[name]
    return f"{column.heading} ({column.unit})" if column.unit else column.heading


def situation_table(situation: str, results: Sequence[CellResult], names: Sequence[str] = SHOWN) -> Grid:
    """Return the figures of the schemes in one situation."""
    rows = [[each.cell.scheme, *(COLUMNS[name].text(each.mean(name)) for name in names)] for each in results]
    return [[situation, *map(heading, names)], *rows]


def figure_table(name: str, results: Iterable[CellResult]) -> Grid:
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
