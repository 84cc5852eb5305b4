"""Instances of Kafka Streams applications: processes that print their states, and what they do, as lines."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from brokers.kafka_releases import jars
from clients.line_clients import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from brokers.kafka_releases import Release

END_S = 60
"""The time limit for an instance to close."""


class Instance:
    """A process of an application; `lines` are those it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.strip() for line in self.process.stdout)

    def ask(self, command: str) -> None:
        """Send a line; the answer is another of the lines."""
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)

    def close(self) -> None:
        """Close the application, and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(END_S)

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        self.process.kill()
        with self.process:
            self._reader.join()


@contextmanager
def instance(program: str, release: Release, settings: Mapping[str, object], state: Path) -> Iterator[Instance]:
    """Run an instance of a program with the Kafka Streams of a release; `state` is its folder."""
    path = f"{jars(release.version, 'kafka-streams')}/*"
    command = ["java", "-Xmx256m", "-cp", path, str(PROGRAMS / f"{program}.java")]
    process = subprocess.Popen(
        [*command, *(f"{name}={text}" for name, text in {**settings, "state.dir": state}.items())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    running = Instance(process)
    try:
        yield running
    finally:
        running.kill()
