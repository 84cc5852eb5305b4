"""A row of the benchmark: the measurement, its comparison, the target, and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One comparison. `met` None: no verdict, and `result` has the reason. `figures` go into the JSON."""

    part: str
    work: str
    measured: str
    beside: str
    result: str
    target: str
    met: bool | None
    figures: dict[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return all fields."""
        return asdict(self)


VERDICTS = {True: "[green]met[/]", False: "[bold red]missed[/]", None: "[yellow]no verdict[/]"}


def table(rows: Sequence[Row]) -> Table:
    """Render the rows in order of measurement."""
    shown = Table(title="make bench: ratios of one run", title_justify="left")
    for name in ("work", "koordinator", "beside", "result", "target", ""):
        shown.add_column(name, overflow="fold")
    part = None
    for row in rows:
        if row.part != part:
            shown.add_section()
            shown.add_row(f"[bold]{row.part}[/]")
            part = row.part
        shown.add_row(row.work, row.measured, row.beside, row.result, row.target, VERDICTS[row.met])
    return shown


BEGIN, END = "<!-- make bench -->", "<!-- end -->"
"""The lines of a page around its table."""


def write_page(page: Path, rows: Sequence[Row]) -> None:
    """Replace the table of a Markdown page. Raises ValueError without the lines around it."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: no lines {BEGIN} and {END}")
    page.write_text("\n".join((before + begin, "", *_markdown(rows), "", end + after)), encoding="utf-8")


def _markdown(rows: Sequence[Row]) -> Iterator[str]:
    yield "| work | koordinator | beside | result | target | |"
    yield "|---|---|---|---|---|---|"
    for part, group in groupby(rows, lambda row: row.part):
        yield f"| **{part}** | | | | | |"
        for row in group:
            verdict = {True: "met", False: "**missed**", None: ""}[row.met]
            yield f"| {row.work} | {row.measured} | {row.beside} | {row.result} | {row.target} | {verdict} |"
