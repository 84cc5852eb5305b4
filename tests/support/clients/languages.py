"""What the tests of the clients of other languages share: their environment, and the end of a server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from brokers.maven import local_repository

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

END_S = 30.0
"""The limit for the end of a server."""


def run_client(
    command: Sequence[str], folder: Path, timeout_s: float, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of another language, whose client starts the server of this interpreter."""
    environment = {**os.environ, "KOORDINATOR_COMMAND": f"{sys.executable} -m koordinator", **variables}
    with local_repository(command):
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def wait_closed(address: str) -> None:
    """Wait until nothing listens at HOST:PORT. Raises AssertionError after END_S."""
    host, _, port = address.strip().rpartition(":")
    end = time.monotonic() + END_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            probe.settimeout(0.1)
            if probe.connect_ex((host, int(port))) != 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"{address}: the server still listens")
