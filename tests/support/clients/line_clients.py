"""Clients of Java, Go and Node.js: programs that take commands as lines, and answer each with one line.

Commands of the program `transacting`, with the name of a client where they have one:

* `producer NAME TID`: a producer with an initialized transactional id; then `begin NAME`, `send NAME TOPIC VALUE`,
  `commit NAME`, `abort NAME`.
* `copier NAME TID GROUP FROM TO`: a consumer and its producer; then `copy NAME COUNT` begins a transaction and copies
  records, fewer if none come for 3 s; `finish NAME` commits it with the offsets of the group,
  and answers whether it was committed or aborted (KIP-447).
* `read TOPIC COUNT`: the first committed values of a topic.

Commands of `joining`, which Java and Go have:

* `join NAME GROUP PROTOCOL INSTANCE TOPIC`: a member with `group.protocol` classic or consumer; INSTANCE may be -
  (dynamic), TOPIC a pattern that begins with ^.
* `owned NAME COUNT` waits until the member owns so many partitions by its own account, and answers them.
* `block NAME`: its revocations wait until `free NAME`.
* `commit NAME TOPIC PARTITION OFFSET`; `leave NAME` closes it.

The answer is `ok` with a value, or `error` with the client's own text.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

from brokers.kafka_releases import NEWEST, jars, run

if TYPE_CHECKING:
    from concurrent.futures import Future

PROGRAMS = Path(__file__).parent / "programs"
BUILD = Path(__file__).parents[3] / "build" / "clients"

TOOLS = {"java": "java", "franz-go": "go", "kafkajs": "node"}
"""The tool that each client needs."""

ANSWER_S = 120
INSTALL_S = 300


class ClientError(Exception):
    """The client's own error."""


class LineClients:
    """The clients of one program; they all use one cluster. `close` ends the process like a crash.

    Args:
        kind: of `TOOLS`.
        servers: the bootstrap address.
        program: "transacting" or "joining".
    """

    def __init__(self, kind: str, servers: str, program: str = "transacting") -> None:
        command = {"java": _java, "franz-go": _go, "kafkajs": _node}[kind](program)
        self._process = subprocess.Popen(
            (*command, servers), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, *words: object) -> str:
        """Perform a command; return the value of its answer. Raises ClientError."""
        return self.begin(*words).result()

    def begin(self, *words: object) -> Future[str]:
        """Begin a command; commands of one program are performed one after the other."""
        return self._pool.submit(self._ask, " ".join(map(str, words)))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._pool.shutdown()
        with self._process:
            pass

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(ANSWER_S, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            word, _, value = self._process.stdout.readline().strip().partition(" ")
        finally:
            watchdog.cancel()
        assert word, f"the program has ended, or given no answer within {ANSWER_S} s, to: {line}"
        if word == "error":
            raise ClientError(value)
        return value


def _java(program: str) -> tuple[str, ...]:
    return ("java", "-Xmx256m", "-cp", f"{jars(NEWEST.version)}/*", str(PROGRAMS / f"{program.capitalize()}.java"))


def _go(program: str) -> tuple[str, ...]:
    target = BUILD / program
    sources = {"transacting": PROGRAMS, "joining": PROGRAMS / "joining"}[program]
    run("go", "build", "-C", str(sources), "-o", str(target), ".", timeout_s=INSTALL_S)
    return (str(target),)


def _node(program: str) -> tuple[str, ...]:
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", f"{program}.mjs"):
        shutil.copy(PROGRAMS / name, BUILD)
    if not (BUILD / "node_modules").is_dir():
        options = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
        run("npm", "--prefix", str(BUILD), "install", *options, timeout_s=INSTALL_S)
    return ("node", str(BUILD / f"{program}.mjs"))
