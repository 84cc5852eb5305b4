"""Fixtures that run the command line, in this process or in its own, which never outlives its test."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
from brokers.scripted_broker import Scripted
from clients.groups_command import Ran, runner

from koordinator import Emulator
from koordinator.wire.apis import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator import Cluster

READY_S = 60
"""Seconds until the first line, with room for a busy machine."""

END_S = 60
"""Seconds until the process ends, likewise."""


class Served:
    """A running `koordinator serve`. All output is collected; every wait has a limit."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "koordinator", "serve", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._lines: dict[str, queue.Queue[str | None]] = {"out": queue.Queue(), "err": queue.Queue()}
        for name, stream in (("out", self.process.stdout), ("err", self.process.stderr)):
            threading.Thread(target=self._collect, args=(name, stream), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_S)

    def _collect(self, name: str, stream: Any) -> None:
        with stream:
            for line in stream:
                self._lines[name].put(line.rstrip("\n"))
        self._lines[name].put(None)

    def line(self, name: str = "out") -> str | None:
        """Return the next line of "out" or "err"; None after the end."""
        return self._lines[name].get(timeout=READY_S)

    def rest(self, name: str) -> list[str]:
        """Return the remaining lines until the process ends."""
        lines: list[str] = []
        while (line := self.line(name)) is not None:
            lines.append(line)
        return lines

    def ready(self) -> dict[str, Any]:
        """Return the object of the first line."""
        line = self.line()
        assert line is not None, self.rest("err")
        ready = json.loads(line)
        assert isinstance(ready, dict)
        return ready

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(END_S)

    def ended(self) -> int:
        """Wait for the end and return the exit status."""
        return self.process.wait(READY_S)


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """A function that starts `koordinator serve` with arguments."""
    running: list[Served] = []

    def start(*arguments: str) -> Served:
        running.append(Served(*arguments))
        return running[-1]

    yield start
    for served in running:
        served.__exit__()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `koordinator groups` with arguments."""
    return runner(capsys)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"t": 4}, seed=1) as running:
        yield running


@pytest.fixture
def at(cluster: Cluster) -> tuple[str, str]:
    return ("--bootstrap-server", cluster.bootstrap_servers)


@pytest.fixture
def broker() -> Iterator[Scripted]:
    # of a release without consumer groups (KIP-848)
    kinds = ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE
    with Scripted(versions=dict.fromkeys(kinds)) as scripted:
        yield scripted
