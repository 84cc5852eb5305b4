"""The result of a job on another thread, for a caller that an exception may interrupt anywhere.

`concurrent.futures.Future` and `threading.Event` guard their state with a lock that the waiting thread holds for
moments. An exception of a signal handler (Ctrl-C, pytest-timeout) in such a moment leaves it locked, and the other
thread blocks when it sets the result. Here the waiting thread only waits.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Generic, TypeVar

_T = TypeVar("_T")

RECHECK_S = 0.1
"""The interval at which a waiting thread checks again: another one may have been interrupted with the lock."""


class Outcome(Generic[_T]):
    """A result or an error; one thread sets it, once."""

    def __init__(self) -> None:
        self.is_set = False
        self._result: _T | None = None
        self._error: BaseException | None = None
        self._unset = Lock()
        self._unset.acquire()

    def set_result(self, result: _T) -> None:
        """Set the result."""
        self._result = result
        self._set()

    def set_error(self, error: BaseException) -> None:
        """Set the exception that `result` raises."""
        self._error = error
        self._set()

    def _set(self) -> None:
        self.is_set = True
        self._unset.release()

    def wait(self, timeout_s: float) -> bool:
        """Return whether there is an outcome, after up to `timeout_s` seconds."""
        end = time.monotonic() + timeout_s
        while not self.is_set and (left_s := end - time.monotonic()) > 0:
            if self._unset.acquire(timeout=min(left_s, RECHECK_S)):
                self._unset.release()
        return self.is_set

    def result(self) -> _T:
        """Wait for the result and return it. Raises the error, if that is the outcome."""
        while not self.is_set:
            if self._unset.acquire(timeout=RECHECK_S):
                self._unset.release()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]
