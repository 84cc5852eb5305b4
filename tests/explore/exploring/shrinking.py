"""Making a sequence short that shows a difference: without the steps, and the time, that do not matter.

Which sequences still show it is asked of `shows` for many at once, because each may take seconds of a broker's time,
and all of them together take no longer than the longest. That is why time is saved first.
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
"""Gaps between requests are not made shorter than this."""


def shrunk(sequence: Sequence, end_ms: int, shows: Shows) -> Sequence:
    """The shortest that was found. What shows the difference has come by `end_ms`, if that can be said at all."""
    ended = replace(sequence, steps=tuple(step for step in sequence.steps if step.at_ms < end_ms), end_ms=end_ms)
    if end_ms < sequence.end_ms and shows([ended])[0]:
        sequence = ended
    return _with_less_time(_with_fewer_steps(_with_less_time(sequence, shows), shows), shows)


def _with_fewer_steps(sequence: Sequence, shows: Shows) -> Sequence:
    """Without as many steps as possible: first many neighbours at once, in the end one at a time."""
    size = len(sequence.steps) // 2
    while size:
        pieces = [range(at, min(at + size, len(sequence.steps))) for at in range(0, len(sequence.steps), size)]
        found = _those_that(shows, pieces, sequence.without)
        # all that can go alone may not be able to go together
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
    """With the gaps made short that need not be long, the end included."""

    def hastened(*numbers: int) -> Sequence:
        shorter = sequence
        for number in numbers:
            shorter = shorter.hastened(number, sequence.gap(number) - GAP_MIN_MS)
        return shorter

    long = [number for number in range(len(sequence.steps) + 1) if sequence.gap(number) > GAP_MIN_MS]
    found = _those_that(shows, long, hastened)
    while found:
        # likewise; then without the first of them, and so on
        shorter = hastened(*found)
        if shows([shorter])[0]:
            return shorter
        found = found[1:]
    return sequence


def _those_that(shows: Shows, candidates: list[T], made: Callable[[T], Sequence]) -> list[T]:
    """Those of which what is made shows the difference."""
    shown = shows([made(each) for each in candidates])
    return [each for each, still in zip(candidates, shown, strict=True) if still]
