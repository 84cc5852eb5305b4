"""The observations of one client check, and the status that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .group_trace import Exchange, Line

PASS, FAIL, INCONCLUSIVE, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not_applicable"

SHOWN = 3
"""The number of observations that a message lists; it counts the others."""


class Observations:
    """The passes, failures and unclear cases of a check, with the trace lines that show them."""

    def __init__(self) -> None:
        self._passes: list[int] = []
        self._failures: list[tuple[str, tuple[int, ...]]] = []
        self._unclear: list[tuple[str, tuple[int, ...]]] = []

    def add_pass(self, *evidence: Exchange | Line) -> None:
        """Record correct behaviour."""
        self._passes.extend(_seqs(evidence))

    def add_failure(self, text: str, *evidence: Exchange | Line) -> None:
        """Record a violation."""
        self._failures.append((text, _seqs(evidence)))

    def add_unclear(self, text: str, *evidence: Exchange | Line) -> None:
        """Record behaviour that the trace does not settle, or not yet."""
        self._unclear.append((text, _seqs(evidence)))

    @property
    def status(self) -> str:
        """`fail` after any failure, else `inconclusive` after any unclear observation."""
        if self._failures:
            return FAIL
        if self._unclear:
            return INCONCLUSIVE
        return PASS if self._passes else NOT_APPLICABLE

    @property
    def evidence(self) -> tuple[int, ...]:
        """The sequence numbers of the lines that decide the status."""
        observations = self._failures or self._unclear
        if not observations:
            return tuple(self._passes)
        return tuple(sorted({seq for _, seqs in observations for seq in seqs}))

    @property
    def message(self) -> str:
        """The failures, else the unclear observations; "" without either."""
        texts = [text for text, _ in self._failures or self._unclear]
        more = f"; and {len(texts) - SHOWN} more of the kind" if len(texts) > SHOWN else ""
        return "; ".join(texts[:SHOWN]) + more


def _seqs(evidence: tuple[Exchange | Line, ...]) -> tuple[int, ...]:
    return tuple(int(item["seq"]) if isinstance(item, dict) else item.seq for item in evidence)
