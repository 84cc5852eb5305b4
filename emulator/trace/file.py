"""The file behind `--trace` and `Emulator(trace=…)`: one event a line, as it happens."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TraceFile:
    """A sink for trace lines that never gets in the way of serving.

    Opening raises OSError. What the file held before is gone only with `begin`, and lines wait for that: an emulator
    that cannot start leaves the trace of the one that runs alone. A line that cannot be written later (a full disk, a
    reader that went away) is the end of the file: `warn` is called once, and this line and all that follow are only
    counted, in `lost`.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        # unbuffered: what happened is in the file even if this process is killed
        self._file = path.open("ab", buffering=0)
        self._path = path
        self._warn = warn
        self._early: list[str] | None = []
        self.lost = 0

    def begin(self) -> None:
        """Empty the file and write the lines that have been waiting."""
        with suppress(OSError):
            # a pipe or a device cannot be emptied, and need not be
            self._file.truncate(0)
        early, self._early = self._early or [], None
        for line in early:
            self(line)

    def __call__(self, line: str) -> None:
        """Write one line, given without its end."""
        if self._early is not None:
            self._early.append(line)
            return
        if self._file.closed:
            self.lost += 1
            return
        rest = memoryview(f"{line}\n".encode())
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.lost += 1
            with suppress(OSError):
                self._file.close()
            reason = error.strerror or error
            self._warn(f"trace file {self._path}: {reason}; serving goes on, events are counted, not written")

    def close(self) -> None:
        """Close the file; if events were lost, say how many."""
        with suppress(OSError):
            self._file.close()
        if self.lost:
            self._warn(f"trace file {self._path}: {self.lost} events were not written")
