"""The trace file of `--trace` and `Emulator(trace=…)`: one line for each event, written at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TraceFile:
    """A sink for trace lines that never disturbs serving.

    Opening raises OSError. `begin` empties the file, and lines wait for it: an emulator that cannot start leaves the
    trace of a running one intact. After the first write error (a full disk, a closed pipe) the file is closed, `warn`
    is called once, and `lost` counts this line and all later ones.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        # unbuffered: the file is complete even if this process is killed
        self._file = path.open("ab", buffering=0)
        self._path = path
        self._warn = warn
        self._early: list[str] | None = []
        self.lost = 0

    def begin(self) -> None:
        """Empty the file and write the waiting lines."""
        with suppress(OSError):
            # a pipe or a device cannot be truncated
            self._file.truncate(0)
        early, self._early = self._early or [], None
        for line in early:
            self(line)

    def __call__(self, line: str) -> None:
        """Write one line; `line` has no line terminator."""
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
            self._warn(f"trace file {self._path}: {reason}; serving continues, later events are only counted")

    def close(self) -> None:
        """Close the file; warn with the number of lost events, if any."""
        with suppress(OSError):
            self._file.close()
        if self.lost:
            self._warn(f"trace file {self._path}: {self.lost} events were not written")
