"""The lock of Maven's local repository: before 3.9 two processes that fetch the same file spoil it for each other."""

from __future__ import annotations

import getpass
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOCK = Path(tempfile.gettempdir(), f"koordinator-maven-{getpass.getuser()}.lock")

LOCK_S = 1_800
"""The longest wait for another process, which may be fetching all that a project needs."""

LOOK_S = 0.2


@contextmanager
def local_repository(command: Sequence[str]) -> Iterator[None]:
    """Wait for the end of other processes of Maven if this is one. Raises TimeoutError after LOCK_S."""
    if command[0] != "mvn":
        yield
        return
    import fcntl  # noqa: PLC0415 - absent on Windows

    until = time.monotonic() + LOCK_S
    with LOCK.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError(f"another process has held {LOCK} for {LOCK_S} s") from None
                time.sleep(LOOK_S)
        yield
