"""Coverage of an exploration: error codes by API and group state."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from exploring.actors import error_codes
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exploring.steps import Played, Sequence

Seen = Counter[tuple[str, int, str]]
"""Counts by (API, error code, state of the group at the request)."""

FIGURES = {90: 125, 500: 155, 1_900: 162}
"""The least number of distinct entries for a number of sequences; the largest entry not above the actual number
applies. The old coordinator shows 165 in 2,000 sequences, the new one of 4.3 shows 173.
"""


def seen_in(sequence: Sequence, played: Played, states: Iterable[str]) -> Seen:
    """Return the entries of one playing. A response with several rows counts for each of their codes."""
    return Counter(
        (step.api, code, state)
        for step, outcome, state in zip(sequence.steps, played.outcomes, states, strict=True)
        if outcome.answer is not None
        for code in error_codes(outcome.answer)
    )


def figure(sequences: int) -> int:
    """Return the required number of entries."""
    return max((least for number, least in FIGURES.items() if number <= sequences), default=0)


def table(seen: Seen) -> str:
    """Render APIs and codes as rows, states as columns."""
    states = sorted({state for _, _, state in seen})
    rows = sorted({(api, code) for api, code, _ in seen})
    lines = [f"{'':44}" + "".join(f"{state:>20}" for state in states)]
    for api, code in rows:
        counts = "".join(f"{seen[api, code, state] or '.':>20}" for state in states)
        lines.append(f"{api:16}{code:4} {Error(code).name:23}{counts}")
    return "\n".join(lines)
