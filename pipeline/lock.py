"""The lock of a store: one load at a time may write to it."""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from koordinator.emulator.storage.files import File, Files

from .job_errors import JobRefused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "lock"
"""The lock file in the store's folder; it names its owner."""


@contextmanager
def locked(folder: Path | None) -> Iterator[None]:
    """Hold the lock of a store in a folder of this machine; a store elsewhere (None) has none.

    The system releases the lock when the process ends. Raises JobRefused with the owner and the time of another load.
    """
    file = None if folder is None else _open(folder)
    if folder is None or file is None:
        yield
        return
    try:
        try:
            file.lock()
        except OSError as error:
            raise JobRefused(f"{folder}: {_owner(folder)} is loading into it: wait until it ends") from error
        now = datetime.now(UTC).isoformat(" ", "seconds")
        file.truncate(0)
        file.write(0, f"process {os.getpid()} on {platform.node()}, since {now},".encode())
        yield
    finally:
        file.close()


def _open(folder: Path) -> File | None:
    """Open the lock file. Return None if that is impossible: Spark will say why, or has the folder elsewhere."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Files().open(folder / NAME)
    except OSError:
        return None


def _owner(folder: Path) -> str:
    try:
        return (folder / NAME).read_text(encoding="utf-8")
    except OSError:  # pragma: no cover - on Windows nobody else may read a locked file
        return "another process"
