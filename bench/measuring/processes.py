"""The processes of the benchmark: servers and load. Each ends with the block that started it."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

HERE = Path(__file__).parent
LIMIT_S = 150.0
"""The limit for a process to answer; the load itself gives up earlier."""

BUILD_S = 600.0
END_S = 10.0
REST_S = 0.1
PAGE_BYTES = resource.getpagesize()
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Process:
    """A child that writes JSON lines; it ends with its input, or is killed."""

    def __init__(self, *command: str, log: IO[str] | None = None) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *_inherited()])}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)
        self._process.stdout.close()

    def line(self) -> dict[str, Any]:
        """Return the next line. TimeoutError after the limit, RuntimeError if the process has ended."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], LIMIT_S)
        if not ready:
            raise TimeoutError(f"{self._process.args!r} says nothing")
        text = self._process.stdout.readline()
        if not text:
            raise RuntimeError(f"{self._process.args!r} has ended with {self._process.wait(END_S)}")
        found: dict[str, Any] = json.loads(text)
        return found

    def tell(self, **order: object) -> dict[str, Any]:
        """Send an order and return its answer."""
        assert self._process.stdin is not None
        # if it has ended, its missing answer is the better error
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
        return self.line()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def resident_bytes(self) -> int:
        """Return its resident memory."""
        return int(self._stat("statm").split()[1]) * PAGE_BYTES

    def processor_s(self) -> float:
        """Return its processor time, in steps of 10 ms on most systems."""
        fields = self._stat("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def _stat(self, name: str) -> str:
        return Path(f"/proc/{self._process.pid}/{name}").read_text(encoding="utf-8")


def _inherited() -> list[str]:
    path = os.environ.get("PYTHONPATH")
    return [path] if path else []


class Server(Process):
    """A server under load; it listens on `port` of 127.0.0.1 when this returns."""

    def __init__(self, *command: str, log: IO[str] | None = None) -> None:
        super().__init__(*command, log=log)
        self.said = self.line()
        self.port = int(self.said["port"])

    def rest(self) -> None:
        """Wait until it is idle: no measurable processor time for REST_S."""
        until = time.monotonic() + LIMIT_S
        before, used = -1.0, self.processor_s()
        while used != before:
            if time.monotonic() > until:
                raise TimeoutError(f"{self._process.args!r} has been busy for {LIMIT_S:.0f} s")
            time.sleep(REST_S)
            before, used = used, self.processor_s()


ANY_RECORD = ("--config", "message.max.bytes=2147483647")
"""For groups whose state exceeds the record size limit: with Kafka's default, SyncGroup is refused, as by Kafka."""


def emulator(*options: str, log: IO[str] | None = None) -> Server:
    """Start our server as users do: trace on, profile `fast`. `log` receives its stderr, ours if None."""
    return Server(sys.executable, "-m", "koordinator", "serve", "--port", "0", *options, log=log)


def echo() -> Server:
    """Start the Trio echo server."""
    return Server(sys.executable, str(HERE / "echo.py"))


def mock() -> Server:
    """Start librdkafka's mock cluster."""
    return Server(sys.executable, str(HERE / "mock.py"))


def kfake_program() -> Path | str:
    """Build the server of franz-go's kfake; return its path, or the reason why there is none."""
    go = shutil.which("go")
    if go is None:
        return "Go is not installed"
    target = Path(tempfile.gettempdir()) / f"koordinator-bench-kfake-{os.getuid()}"
    command = (go, "build", "-o", str(target), ".")
    try:
        subprocess.run(command, cwd=HERE / "kfake", capture_output=True, text=True, timeout=BUILD_S, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return f"{error}: {error.stderr or ''}"
    return target


def load() -> Process:
    """Start the load process."""
    return Process(sys.executable, str(HERE / "load.py"))


def hostile() -> Process:
    """Start the hostile peers."""
    return Process(sys.executable, str(HERE / "hostile.py"))


def polls() -> Process:
    """Start the long polls."""
    return Process(sys.executable, str(HERE / "polls.py"))


@contextmanager
def rival(server: Server) -> Iterator[None]:
    """Give a server half a processor: it shares one with a process that never waits."""
    everywhere = os.sched_getaffinity(server.pid)
    with Process(sys.executable, "-c", "while True: pass") as spinning:
        for pid in (server.pid, spinning.pid):
            os.sched_setaffinity(pid, {min(everywhere)})
        yield
    os.sched_setaffinity(server.pid, everywhere)


def file_limit() -> int:
    """Return the limit of open files of a process: the soft limit, raised to the hard one for our children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
