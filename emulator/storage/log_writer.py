"""The performer of `WriteLog` effects: in order, with one commit for all that wait (group commit)."""

from __future__ import annotations

from collections import deque
from threading import Lock  # noqa: TID251 - a lock, not a thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.effects import WriteLog
    from .data_dir import DataDir


class LogWriter:
    """The queue of log writes of a cluster. `write_queued` may run in any thread; the other methods belong to one."""

    def __init__(self, data_dir: DataDir) -> None:
        self._data_dir = data_dir
        self._writing = Lock()
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
        """Return once all queued writes are durable or have failed; first wait for a call in another thread."""
        with self._writing:
            writes = [self._queue.popleft() for _ in range(len(self._queue))]
            if not writes:
                return
            failure = None
            for write in writes:
                for log in write.compacted:
                    self._data_dir.replace(log)
            try:
                appends = (log for write in writes for log in write.appends)
                self._data_dir.write(appends, [change for write in writes for change in write.changes])
            except OSError as error:
                failure = error
            self._results.extend((write, failure) for write in writes)

    def results(self) -> Iterator[tuple[WriteLog, OSError | None]]:
        """Take the writes performed since the last call, each with its failure, if any.

        With a failed write all later ones end: their records follow those that are lost.
        """
        while self._results:
            write, failure = self._results.popleft()
            self._completed += 1
            if failure is not None:
                self._completed = self._submitted
                self._results.clear()
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
