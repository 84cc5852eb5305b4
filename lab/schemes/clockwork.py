"""Virtual time for schemes without the emulator's core: calls that are due, and tasks that wait.

A task is a generator. It yields a number of ms to wait, or None to wait until `wake`.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")

Steps: TypeAlias = "Generator[int | None, None, T]"
"""The steps of a task, or of a part of it that returns a value."""


class Clockwork:
    """Calls in the order of their times; equal times in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Schedule a call."""
        self._count += 1
        heappush(self._due, (self.now_ms + delay_ms, self._count, call))

    def run(self, until_ms: int) -> None:
        """Make all calls that are due up to a time."""
        while self._due and self._due[0][0] <= until_ms:
            self.now_ms, _, call = heappop(self._due)
            call()
        self.now_ms = until_ms


class Process:
    """The tasks of one process, which end, pause and resume together."""

    def __init__(self, clockwork: Clockwork) -> None:
        self.clockwork = clockwork
        self.is_alive = True
        self.is_paused = False
        self._overdue: list[Callable[[], None]] = []

    def run(self, steps: Steps[None]) -> SimulatedTask:
        """Start a task now."""
        task = SimulatedTask(self, steps)
        task.advance()
        return task

    def call(self, call: Callable[[], None]) -> None:
        """Make a call: at once, after the pause, or never if the process has ended."""
        if self.is_paused:
            self._overdue.append(call)
        elif self.is_alive:
            call()

    def resume(self) -> None:
        """End a pause; everything overdue happens now."""
        self.is_paused = False
        overdue, self._overdue = self._overdue, []
        for call in overdue:
            self.call(call)


class SimulatedTask:
    """A generator in virtual time."""

    def __init__(self, process: Process, steps: Steps[None]) -> None:
        self._process = process
        self._steps = steps
        self._is_waiting = False

    def advance(self) -> None:
        """Run the task up to its next wait."""
        self._is_waiting = False
        try:
            delay_ms = next(self._steps)
        except StopIteration:
            return
        if delay_ms is None:
            self._is_waiting = True
        else:
            self._process.clockwork.after(delay_ms, lambda: self._process.call(self.advance))

    def wake(self) -> None:
        """Continue a task that waits without a limit; others are not disturbed."""
        if self._is_waiting:
            self._is_waiting = False
            self._process.call(self.advance)
