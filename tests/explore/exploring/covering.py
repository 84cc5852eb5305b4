"""What the sequences have shown: which API said which error code while the group was in which state."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from exploring.actors import error_codes
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exploring.steps import Played, Sequence

Seen = Counter[tuple[str, int, str]]
"""How often, by (API, error code, state of the group when the request came)."""

FIGURES = {90: 125, 500: 155, 1_900: 162}
"""Of so many sequences at least so many different ones are seen; the largest number that was played counts. The old
coordinator shows 165 in 2,000 sequences, the new one of 4.3 173."""


def seen_in(sequence: Sequence, played: Played, states: Iterable[str]) -> Seen:
    """What one playing adds. An answer with several rows counts for each of their codes."""
    return Counter(
        (step.api, code, state)
        for step, outcome, state in zip(sequence.steps, played.outcomes, states, strict=True)
        if outcome.answer is not None
        for code in error_codes(outcome.answer)
    )


def figure(sequences: int) -> int:
    """How much of it has to be seen in so many sequences."""
    return max((least for number, least in FIGURES.items() if number <= sequences), default=0)


def table(seen: Seen) -> str:
    """APIs and codes down, states across."""
    states = sorted({state for _, _, state in seen})
    rows = sorted({(api, code) for api, code, _ in seen})
    lines = [f"{'':44}" + "".join(f"{state:>20}" for state in states)]
    for api, code in rows:
        counts = "".join(f"{seen[api, code, state] or '.':>20}" for state in states)
        lines.append(f"{api:16}{code:4} {Error(code).name:23}{counts}")
    return "\n".join(lines)
