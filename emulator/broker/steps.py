"""Operations in steps: a generator yields outputs, and goes on once clients have had their turn.

So a long operation never blocks the event loop, and needs none: `run` takes all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from .connections import Output

T = TypeVar("T")

Steps = Generator[list[Output], int, T]
"""An operation in steps. Each step yields the outputs to perform, and is resumed with the time of its node in ms."""


def run(steps: Steps[T], now: int, perform: Callable[[list[Output]], object]) -> T:
    """Take all steps of an operation at `now`, and return its result. Raises the errors of the operation."""
    try:
        outputs = next(steps)
        while True:
            perform(outputs)
            outputs = steps.send(now)
    except StopIteration as done:
        result: T = done.value
        return result
