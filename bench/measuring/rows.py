"""A row of the benchmark: the measurement, its comparison, the target, and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence


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
