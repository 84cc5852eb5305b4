"""The little that a data directory wants of a file system; a test puts one in its place that crashes.

A write is on disk when `File.sync` has returned; a file that was made, renamed or removed, when `Files.sync_dir` of its
directory has. Everything raises OSError.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":  # pragma: no cover - elsewhere
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)


class File:
    """An open file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def size(self) -> int:
        """How many bytes it has."""
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        """Cut off what is behind so many bytes."""
        os.ftruncate(self._fd, size)

    def write(self, at: int, data: bytes) -> None:
        """Write all the data from a position on."""
        os.lseek(self._fd, at, os.SEEK_SET)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def sync(self) -> None:
        """Returns when everything written to it is on disk."""
        os.fsync(self._fd)

    def lock(self) -> None:
        """Keep others out until it is closed, or the process ends in any way. OSError if somebody is in."""
        if sys.platform == "win32":  # pragma: no cover - elsewhere
            msvcrt.locking(self._fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


class Files:
    """The file system."""

    def names(self, path: Path) -> list[str]:
        """What is in a directory."""
        return [each.name for each in path.iterdir()]

    def make_dir(self, path: Path) -> None:
        """Make a directory."""
        path.mkdir()

    def read(self, path: Path) -> bytes:
        """All that is in a file."""
        return path.read_bytes()

    def open(self, path: Path) -> File:
        """Open a file for writing; it is made if it is missing."""
        return File(os.open(path, os.O_RDWR | os.O_CREAT | _BINARY, 0o666))

    def rename(self, path: Path, target: Path) -> None:
        """Put a file in the place of another one in its directory, at once."""
        path.replace(target)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with all that is in it."""
        shutil.rmtree(path)

    def sync_dir(self, path: Path) -> None:
        """Returns when it is on disk what is in a directory, by name."""
        if sys.platform == "win32":  # pragma: no cover - directories cannot be opened there
            return
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
