"""The file system operations of a data directory; tests replace them with a file system that crashes.

A write is durable once `File.sync` has returned. A created, renamed or removed file is durable once `Files.sync_dir` of
its directory has returned. Every operation may raise OSError.
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
        """Return the size in bytes."""
        return os.fstat(self._fd).st_size

    def is_at(self, path: Path) -> bool:
        """Return whether the path still leads to this file; False if the file was removed or replaced."""
        try:
            return os.path.samestat(os.fstat(self._fd), path.stat())
        except FileNotFoundError:
            return False

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(self._fd, size)

    def write(self, at: int, data: bytes) -> None:
        """Write all the data at a position."""
        os.lseek(self._fd, at, os.SEEK_SET)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def sync(self) -> None:
        """Return once all writes to the file are on disk."""
        os.fsync(self._fd)

    def lock(self) -> None:
        """Lock the file until it is closed or the process ends; OSError if another process holds the lock."""
        if sys.platform == "win32":  # pragma: no cover - elsewhere
            msvcrt.locking(self._fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class Files:
    """The file system."""

    def names(self, path: Path) -> list[str]:
        """Return the names in a directory."""
        return [entry.name for entry in path.iterdir()]

    def make_dir(self, path: Path) -> None:
        """Make a directory."""
        path.mkdir()

    def read(self, path: Path) -> bytes:
        """Return the content of a file."""
        return path.read_bytes()

    def open(self, path: Path) -> File:
        """Open a file for writing; create it if it is missing."""
        return File(os.open(path, os.O_RDWR | os.O_CREAT | _BINARY, 0o666))

    def rename(self, path: Path, target: Path) -> None:
        """Replace another file of the same directory atomically."""
        path.replace(target)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and its content."""
        shutil.rmtree(path)

    def sync_dir(self, path: Path) -> None:
        """Return once the names in a directory are on disk."""
        if sys.platform == "win32":  # pragma: no cover - directories cannot be opened there
            return
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
