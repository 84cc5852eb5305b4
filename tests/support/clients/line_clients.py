"""Clients of Java, Go, Node.js, Rust and Python: programs that take commands as lines, and answer each with one line.

Commands of the program `transacting`, with the name of a client where they have one:

* `producer NAME TID`: a producer with an initialized transactional id; then `begin NAME`, `send NAME TOPIC VALUE`,
  `commit NAME`, `abort NAME`.
* `copier NAME TID GROUP FROM TO`: a consumer and its producer; then `copy NAME COUNT` begins a transaction and copies
  records, fewer if none come for 3 s; `finish NAME` commits it with the offsets of the group,
  and answers whether it was committed or aborted (KIP-447).
* `read TOPIC COUNT`: the first committed values of a topic.

Commands of `joining`:

* `join NAME GROUP PROTOCOL INSTANCE TOPIC`: a member with `group.protocol` classic or consumer; INSTANCE may be -
  (dynamic), TOPIC a pattern that begins with ^.
* `owned NAME COUNT` waits until the member owns so many partitions by its own account, and answers them.
* `first NAME` waits for its first record, and answers the value.
* `block NAME`: its revocations wait until `free NAME`.
* `commit NAME TOPIC PARTITION OFFSET`; `leave NAME` closes it.

Commands of `sharing`, for share groups:

* `share NAME GROUP MODE RECORDS TOPIC`: a member with `share.acknowledgement.mode` implicit or explicit (franz-go knows
  none: what was not acknowledged is accepted by the next poll); RECORDS is the strict limit of a poll, or - for whole
  batches.
* `take NAME` polls until there are records, `poll NAME` once; both answer VALUExCOUNT of each, with its delivery count.
* `accept NAME VALUE ...`, `release`, `reject`, `renew`; then `commit NAME` answers an error's name, or NONE, of each
  partition; `leave NAME` closes it.
* Java's admin: `list -`; `describe GROUP`; `offsets GROUP` answers start offset and lag
  of each partition; `alter GROUP TOPIC PARTITION OFFSET`; `forget GROUP TOPIC` deletes offsets; `delete GROUP`.

Java and franz-go have a program for each, and KafkaJS has `transacting`. The programs of other clients know the
commands of both, without those of copiers and `block`. rskafka has no groups: it knows `write TOPIC VALUE` and `read`.

The answer is `ok` with a value, or `error` with the client's own text.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

from brokers.kafka_releases import CACHE, LOG_WRITER, NEWEST, fetched, jars, run

if TYPE_CHECKING:
    from concurrent.futures import Future

PROGRAMS = Path(__file__).parent / "programs"
BUILD = Path(__file__).parents[3] / "build" / "clients"

TOOLS = {
    "java": "java",
    "confluent-kafka": "python",
    "spring": "java",
    "franz-go": "go",
    "sarama": "go",
    "kafkajs": "node",
    "platformatic": "node",
    "confluent-js": "node",
    "rust-rdkafka": "cargo",
    "rskafka": "cargo",
}
"""The tool that each client needs."""

SPRING = "4.0.6"

NODE_PACKAGES = {
    "kafkajs": ("kafkajs@2.2.4",),
    "platformatic": ("@platformatic/kafka@2.12.1", "node@24"),
    "confluent-js": ("@confluentinc/kafka-javascript@1.10.1",),
}
"""The packages of clients, pinned. @platformatic/kafka needs a newer Node.js than Debian has. The last one is built
from source where its binary cannot be downloaded: it takes the libraries zlib, zstd, OpenSSL and curl of the system."""

VERSIONS = {
    "java": f"Java {NEWEST.version}",
    "confluent-kafka": "confluent-kafka 2.16.1",
    "spring": f"Spring Kafka {SPRING}",
    "franz-go": "franz-go 1.22.3",
    "sarama": "sarama 1.61.1",
    "kafkajs": "KafkaJS 2.2.4",
    "platformatic": "@platformatic/kafka 2.12.1",
    "confluent-js": "confluent-kafka-javascript 1.10.1",
    "rust-rdkafka": "rust-rdkafka 0.39.0",
    "rskafka": "rskafka 0.6.0",
}
"""What the clients are called, with the versions that go.mod, Cargo.toml and the packages above pin."""

ANSWER_S = 120
INSTALL_S = 300
BUILD_S = 1800
"""For librdkafka, from source."""


class ClientError(Exception):
    """The client's own error."""


class LineClients:
    """The clients of one program; they all use one cluster. `close` ends the process like a crash.

    Args:
        kind: of `TOOLS`.
        servers: the bootstrap address.
        program: "transacting", "joining" or "sharing".
    """

    def __init__(self, kind: str, servers: str, program: str = "transacting") -> None:
        command = command_of(kind, program)
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


def command_of(kind: str, program: str) -> tuple[str, ...]:
    """Build the program of a client, if it is not; return the command that starts it, without the address."""
    match kind:
        case "java":
            return _java(jars(NEWEST.version), program)
        case "confluent-kafka":
            return (sys.executable, str(PROGRAMS / "confluent.py"))
        case "spring":
            client = f"org.apache.kafka:kafka-clients:{NEWEST.version}"
            spring = f"org.springframework.kafka:spring-kafka:{SPRING}"
            return _java(fetched(CACHE / f"spring-kafka-{SPRING}", client, spring, LOG_WRITER), "spring")
        case "franz-go":
            return _go(program, PROGRAMS if program == "transacting" else PROGRAMS / program)
        case "sarama":
            return _go("sarama", PROGRAMS / "sarama")
        case "rust-rdkafka" | "rskafka":
            return _rust(kind.removeprefix("rust-"))
        case _:
            return _node(kind, {"kafkajs": program, "confluent-js": "confluent"}.get(kind, kind))


def _java(folder: Path, program: str) -> tuple[str, ...]:
    return ("java", "-Xmx256m", "-cp", f"{folder}/*", str(PROGRAMS / f"{program.capitalize()}.java"))


def _go(name: str, sources: Path) -> tuple[str, ...]:
    target = BUILD / name
    run("go", "build", "-C", str(sources), "-o", str(target), ".", timeout_s=INSTALL_S)
    return (str(target),)


def _rust(name: str) -> tuple[str, ...]:
    options = ("--quiet", "--release", "--manifest-path", str(PROGRAMS / "rust" / "Cargo.toml"))
    run("cargo", "build", *options, "--target-dir", str(BUILD / "rust"), "--bin", name, timeout_s=BUILD_S)
    return (str(BUILD / "rust" / "release" / name),)


def _node(kind: str, program: str) -> tuple[str, ...]:
    folder = BUILD / kind
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "lines.mjs", f"{program}.mjs"):
        shutil.copy(PROGRAMS / name, folder)
    if not (folder / "node_modules").is_dir():
        options = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
        command = ("npm", "--prefix", str(folder), "install", *options, *NODE_PACKAGES[kind])
        run("env", "CKJS_LINKING=dynamic", *command, timeout_s=BUILD_S)
    own = folder / "node_modules" / ".bin" / "node"
    return (str(own) if own.exists() else "node", str(folder / f"{program}.mjs"))
