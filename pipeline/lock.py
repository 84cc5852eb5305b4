"""The lock of a store: one load at a time may write to it."""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from koordinator.emulator.storage.files import Files

from .job_errors import JobRefused

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def locked(root: str) -> Iterator[None]:
    """Hold the lock of a store on this machine: a path, or a URL like file:/store; a store elsewhere has none.

    The system releases the lock when the process ends. Raises JobRefused with the owner and the time of another load.
    """
    path = root.removeprefix("file:")
    if "://" in path:
        yield
        return
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    file = Files().open(folder / "lock")
    try:
        try:
            file.lock()
        except OSError as error:
            raise JobRefused(f"{root}: {_owner(folder / 'lock')} is loading into it: wait until it ends") from error
        now = datetime.now(UTC).isoformat(" ", "seconds")
        owner = f"process {os.getpid()} on {platform.node()}, since {now},"
        file.truncate(0)
        file.write(0, owner.encode())
        yield
    finally:
        file.close()


def _owner(lock: Path) -> str:
    try:
        return lock.read_text(encoding="utf-8")
    except OSError:  # pragma: no cover - on Windows nobody else may read a locked file
        return "another process"
