"""Shrinking a sequence that shows a difference: remove steps and time that do not matter.

`shows` tests many candidates at once, because each takes seconds of a broker's time and all together take no longer
than the longest. Therefore time is saved first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from exploring.steps import Sequence

    Shows = Callable[[list[Sequence]], list[bool]]

T = TypeVar("T")

GAP_MIN_MS = 60
"""Gaps between requests stay at least this long."""


def shrunk(sequence: Sequence, end_ms: int, shows: Shows) -> Sequence:
    """Return the shortest sequence found. The difference shows by `end_ms`, if that is known."""
    ended = replace(sequence, steps=tuple(step for step in sequence.steps if step.at_ms < end_ms), end_ms=end_ms)
    if end_ms < sequence.end_ms and shows([ended])[0]:
        sequence = ended
    return _with_less_time(_with_fewer_steps(_with_less_time(sequence, shows), shows), shows)


def _with_fewer_steps(sequence: Sequence, shows: Shows) -> Sequence:
    """Remove as many steps as possible: many neighbours first, single steps last."""
    size = len(sequence.steps) // 2
    while size:
        pieces = [range(at, min(at + size, len(sequence.steps))) for at in range(0, len(sequence.steps), size)]
        found = _those_that(shows, pieces, sequence.without)
        # steps that can each be removed may not be removable together
        together = sequence.without(number for piece in found for number in piece)
        if len(found) > 1 and shows([together])[0]:
            sequence = together
        elif found:
            sequence = sequence.without(found[-1])
        else:
            size //= 2
        size = min(size, len(sequence.steps))
    return sequence


def _with_less_time(sequence: Sequence, shows: Shows) -> Sequence:
    """Shorten all gaps that need not be long, the final one included."""

    def hastened(*numbers: int) -> Sequence:
        shorter = sequence
        for number in numbers:
            shorter = shorter.hastened(number, sequence.gap(number) - GAP_MIN_MS)
        return shorter

    long = [number for number in range(len(sequence.steps) + 1) if sequence.gap(number) > GAP_MIN_MS]
    found = _those_that(shows, long, hastened)
    while found:
        # then without the first one, and so on
        shorter = hastened(*found)
        if shows([shorter])[0]:
            return shorter
        found = found[1:]
    return sequence


def _those_that(shows: Shows, candidates: list[T], made: Callable[[T], Sequence]) -> list[T]:
    """Return the candidates whose sequence shows the difference."""
    shown = shows([made(each) for each in candidates])
    return [each for each, still in zip(candidates, shown, strict=True) if still]
