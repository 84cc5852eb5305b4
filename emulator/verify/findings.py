"""What a check has found: what is right, what is wrong, and what cannot be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .story import Exchange, Line

PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not_applicable"

SHOWN = 3
"""So many findings are told, the others counted."""


class Findings:
    """Collects what a check finds, with the trace lines that show it."""

    def __init__(self) -> None:
        self._right: list[int] = []
        self._wrong: list[tuple[str, tuple[int, ...]]] = []
        self._unclear: list[tuple[str, tuple[int, ...]]] = []

    def right(self, *shown_by: Exchange | Line) -> None:
        """As it should be."""
        self._right.extend(_seqs(shown_by))

    def wrong(self, said: str, *shown_by: Exchange | Line) -> None:
        """Not as it should be."""
        self._wrong.append((said, _seqs(shown_by)))

    def unclear(self, said: str, *shown_by: Exchange | Line) -> None:
        """It cannot be said, or not yet."""
        self._unclear.append((said, _seqs(shown_by)))

    @property
    def status(self) -> str:
        """One thing that is wrong decides; then one that is unclear."""
        if self._wrong:
            return FAIL
        if self._unclear:
            return INCONCLUSIVE
        return PASS if self._right else NOT_APPLICABLE

    @property
    def evidence(self) -> tuple[int, ...]:
        """The sequence numbers of what decided."""
        told = self._wrong or self._unclear
        return tuple(sorted({seq for _, seqs in told for seq in seqs})) if told else tuple(self._right)

    @property
    def message(self) -> str:
        """What is wrong, or unclear; "" if nothing is."""
        told = [said for said, _ in self._wrong or self._unclear]
        more = f"; and {len(told) - SHOWN} more of the kind" if len(told) > SHOWN else ""
        return "; ".join(told[:SHOWN]) + more


def _seqs(shown_by: tuple[Exchange | Line, ...]) -> tuple[int, ...]:
    return tuple(int(each["seq"]) if isinstance(each, dict) else each.seq for each in shown_by)
