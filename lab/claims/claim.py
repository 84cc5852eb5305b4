"""Claims with checks: the registry, and the helpers of the checks.

A claim's text is ours; its place names the section of the source. A check plays runs and returns their figures. A claim
with a condition is checked without it and with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ..cells import SETTLE_S, Cell, play, record_of
from ..load import Load
from ..record import FactKind
from ..situations import name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..figures import Figures
    from ..record import RunRecord
    from ..schemes.scheme import Scheme

HOLDS, CONDITIONS, FAILS = "holds", "holds with conditions", "does not hold"

ARTICLE, KIP_62, KIP_345 = "article", "KIP-62", "KIP-345"
KIP_389, KIP_394 = "KIP-389", "KIP-394"
KIP_848, KIP_932, KIP_1071 = "KIP-848", "KIP-932", "KIP-1071"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check: the figures as text, whether the claim holds, and whether it does under its condition."""

    figures: str
    holds: bool
    holds_if: bool = False

    @property
    def verdict(self) -> str:
        """HOLDS, CONDITIONS or FAILS."""
        return HOLDS if self.holds else CONDITIONS if self.holds_if else FAILS


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its place in a source, the expected verdict, and its check. `condition` limits the claim."""

    name: str
    place: str
    text: str
    verdict: str
    check: Callable[[], Finding]
    condition: str = ""


CLAIMS: dict[str, Claim] = {}


def claim(
    place: str, text: str, verdict: str = HOLDS, condition: str = ""
) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    """Register a check as a claim, under the function's name."""

    def register(check: Callable[[], Finding]) -> Callable[[], Finding]:
        name = check.__name__.replace("_", "-")
        CLAIMS[name] = Claim(name, place, text, verdict, check, condition)
        return check

    return register


def measure(scheme: str, situation: str, **load: float) -> Figures:
    """Play a cell; equal cells are played once."""
    return _measured(Cell(scheme, situation, Load(**load)))  # type: ignore[arg-type]


@cache
def _measured(cell: Cell) -> Figures:
    return play(cell)


def record(scheme: str, situation: str, **load: float) -> RunRecord:
    """Play a cell and return its record."""
    return record_of(Cell(scheme, situation, Load(**load)))[0]  # type: ignore[arg-type]


def fenced(of: RunRecord) -> int:
    """Return the number of members that the group removed while they ran."""
    return sum(fact.kind is FactKind.FENCED for fact in of.facts[of.first :])


def begin(scheme: Scheme) -> None:
    """Start the members of the load, let them balance, and begin to count."""
    for number in range(scheme.load.members):
        scheme.start(name_of(number))
    scheme.pass_time(SETTLE_S)
    scheme.record.begin(scheme.now_ms)
