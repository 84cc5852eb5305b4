"""Log writes that wait until a test performs them: a runtime allows inputs between a change and its write.

The server leaves no time between them (`ClusterRuntime.settle`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator.emulator.core.effects import WriteLog
    from koordinator.emulator.storage.data_dir import DataDir


class PendingWrites:
    """The log writes of a cluster, in order."""

    def __init__(self, data_dir: DataDir) -> None:
        self._data_dir = data_dir
        self._queue: deque[WriteLog] = deque()
        self._results: deque[tuple[WriteLog, OSError | None]] = deque()
        self._submitted = 0
        # performed writes whose results were taken, and writes that failed with an earlier one
        self._completed = 0

    def submit(self, write: WriteLog) -> None:
        """Queue a write; it is performed by `write_queued`."""
        self._submitted += 1
        self._queue.append(write)

    def write_queued(self) -> None:
        """Perform all queued writes, up to the first that fails."""
        while self._queue:
            write = self._queue.popleft()
            failure = self._data_dir.perform(write)
            self._results.append((write, failure))
            if failure is not None:
                self._queue.clear()

    def results(self) -> Iterator[tuple[WriteLog, OSError | None]]:
        """Take the writes performed since the last call, each with its failure, if any.

        With a failed write all later ones end: their records follow those that are lost.
        """
        while self._results:
            write, failure = self._results.popleft()
            self._completed += 1
            if failure is not None:
                self._completed = self._submitted
                self._queue.clear()
            yield write, failure

    @property
    def is_idle(self) -> bool:
        """Whether all writes have ended."""
        return self._completed == self._submitted

    def barrier(self) -> Callable[[], bool]:
        """Return a check that all writes have ended that anything waits for now."""
        awaited, is_first = self._submitted, True

        def has_ended() -> bool:
            nonlocal awaited, is_first
            if is_first and self._completed >= awaited:
                # what has waited behind a write in flight is queued now
                awaited, is_first = self._submitted, False
            return not is_first and self._completed >= awaited

        return has_ended
