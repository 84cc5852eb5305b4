"""Cells of the matrix: one scheme in one situation under one load. A cell is a plain function of its values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from .figures import figures_of
from .schemes import SCHEMES
from .situations import SITUATIONS, SLOW_S, names_of, victim

if TYPE_CHECKING:
    from .figures import Figures
    from .load import Load
    from .record import RunRecord

SETTLE_S = 200
"""The time in which a group forms and balances before a situation begins."""

AFTER_S = 700
"""The time after the acts of a situation: longer than Connect's delay and two sessions."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A scheme in a situation under a load."""

    scheme: str
    situation: str
    load: Load


def record_of(cell: Cell) -> tuple[RunRecord, int]:
    """Play a cell, and return its record and the time of its end in ms. Equal cells have equal records.

    Raises KeyError for an unknown scheme or situation.
    """
    situation = SITUATIONS[cell.situation]
    with SCHEMES[cell.scheme].open(cell.load) as scheme:
        names = names_of(cell.load.members)
        scheme.announce(names)
        if not situation.begins_empty:
            slow = victim(scheme) if situation.has_slow_member else None
            for name in names:
                scheme.start(name, SLOW_S if name == slow else None)
        scheme.pass_time(SETTLE_S)
        scheme.record.begin(scheme.now_ms)
        situation.play(scheme)
        scheme.pass_time(AFTER_S)
        return scheme.record, scheme.now_ms


def play(cell: Cell) -> Figures:
    """Play a cell, and return its figures."""
    record, end_ms = record_of(cell)
    return figures_of(record, cell.load, end_ms)


@dataclass(frozen=True, slots=True)
class CellResult:
    """The figures of a cell for several seeds, in the order of the seeds from `cell.load.seed` on."""

    cell: Cell
    figures: tuple[Figures, ...]

    def mean(self, name: str) -> float | None:
        """Return the mean of a figure; None if a run has none."""
        numbers = [getattr(each, name) for each in self.figures]
        return None if None in numbers else sum(numbers) / len(numbers)

    def plain(self) -> dict[str, object]:
        """Return the result as JSON data, without its load."""
        return {
            "scheme": self.cell.scheme,
            "situation": self.cell.situation,
            "figures": [asdict(each) for each in self.figures],
        }


def play_seeds(cell: Cell, seeds: int) -> CellResult:
    """Play a cell with as many consecutive seeds."""
    first = cell.load.seed
    loads = (replace(cell.load, seed=seed) for seed in range(first, first + seeds))
    return CellResult(cell, tuple(play(replace(cell, load=load)) for load in loads))
