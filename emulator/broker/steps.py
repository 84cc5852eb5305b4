"""Operations in steps: a generator yields outputs, and goes on once the log writes among them have ended.

So an operation never blocks the event loop, and needs none: `run` takes all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from .connections import Output

if TYPE_CHECKING:
    from ..core.effects import WriteLog

T = TypeVar("T")

Steps = Generator[list[Output], int, T]
"""An operation in steps. Each step yields the outputs to perform, and is resumed with the time of its node in ms."""


def run(steps: Steps[T], now: int, perform: Callable[[list[Output]], object]) -> T:
    """Take all steps of an operation at `now`, and return its result. Raises the errors of the operation.

    `perform` performs the outputs of a step, and returns once their log writes have ended.
    """
    try:
        outputs = next(steps)
        while True:
            perform(outputs)
            outputs = steps.send(now)
    except StopIteration as done:
        result: T = done.value
        return result


@dataclass(slots=True, eq=False)
class OperationWrite:
    """A log write of an operation, and the reason why it is not durable, if it is not."""

    write: WriteLog
    failure: OSError | None = field(default_factory=lambda: OSError("the emulator has stopped"))
