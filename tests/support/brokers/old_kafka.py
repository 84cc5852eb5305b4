"""Kafka 0.8.2.2 with ZooKeeper 3.4 and its high-level consumers, each a process; all run on Java 17."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from brokers.kafka_releases import CACHE, fetched, run
from brokers.real_kafka import END_S, free_ports
from koordinator.client.connection import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

VERSION = "0.8.2.2"
PROGRAM = Path(__file__).parents[1] / "clients" / "programs" / "HighLevelConsuming.java"
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
COMMAND_S = 60

SETTLE_S = 60
"""Time limit of a step on a busy machine; usually a second, and five for an expired session."""

LOOK_S = 0.1
"""The polling interval."""

LOGGED = {
    "log4j.rootLogger": "WARN, out",
    "log4j.logger.kafka.consumer.ZookeeperConsumerConnector": "INFO",
    "log4j.logger.org.I0Itec.zkclient.ZkClient": "DEBUG",
    "log4j.appender.out": "org.apache.log4j.ConsoleAppender",
    "log4j.appender.out.layout": "org.apache.log4j.PatternLayout",
    "log4j.appender.out.layout.ConversionPattern": "%d %c{1} %m%n",
}

BEGUN = re.compile(r"begin rebalancing consumer \S+ try #0$", re.MULTILINE)
NOTIFIED = re.compile(r"Received event: WatchedEvent .* type:Node(?:ChildrenChanged|DataChanged) ")
OWNED = re.compile(r"^\t/consumers/G/owners/t/(\d+)$")
REGISTERED = re.compile(r"^\t/consumers/G/ids/G_(\w+)$")
SESSION = re.compile(r"^(?:\t)?(0x[0-9a-f]+):?$")


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    """Return once it is so; AssertionError after SETTLE_S."""
    deadline = Deadline(SETTLE_S)
    while not is_so():
        assert deadline.left(), f"waited {SETTLE_S} s in vain for: {what}"
        time.sleep(LOOK_S)


class OldKafka:
    """A broker, ZooKeeper, and topic t; a context manager. The consumers are of group G.

    Args:
        folder: for configuration, data and logs; must exist and be empty.
        partitions: of topic t.
    """

    def __init__(self, folder: Path, partitions: int) -> None:
        self._folder = folder
        self._partitions = partitions
        self._port, self._keeper_port = free_ports()
        jars = fetched(CACHE / VERSION, f"org.apache.kafka:kafka_2.11:{VERSION}")
        self._path = f"{jars}/*:{folder}"
        self._java = ("java", *JVM, f"-Dlog4j.configuration=file:{self._written('log4j', LOGGED)}", "-cp", self._path)
        self._consumers: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack as stack:
            run("javac", "-cp", self._path, "-d", str(self._folder), str(PROGRAM), timeout_s=COMMAND_S)
            keeper = {"tickTime": 200, "dataDir": self._folder / "zookeeper", "maxClientCnxns": 0}
            keeper |= {"clientPortAddress": "127.0.0.1", "clientPort": self._keeper_port}
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            self._spawn("zookeeper", main, str(self._written("zookeeper", keeper)))
            wait_until("ZooKeeper answers", lambda: "Mode: standalone" in self._ask("srvr"))
            broker = {"broker.id": 0, "host.name": "127.0.0.1", "port": self._port, "log.dirs": self._folder / "data"}
            broker |= {"zookeeper.connect": self._zookeeper, "zookeeper.connection.timeout.ms": COMMAND_S * 1000}
            self._spawn("broker", "kafka.Kafka", str(self._written("broker", broker)))
            wait_until("the broker registers", lambda: "\t/brokers/ids/0" in self._ask("dump").splitlines())
            self._topic("--create", "--replication-factor", "1")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def _zookeeper(self) -> str:
        return f"127.0.0.1:{self._keeper_port}"

    def start(self, name: str) -> None:
        """Start a consumer."""
        settings = {"zookeeper.connect": self._zookeeper, "group.id": "G", "consumer.id": name}
        settings |= {"zookeeper.session.timeout.ms": "3000", "zookeeper.connection.timeout.ms": f"{COMMAND_S * 1000}"}
        given = (f"{key}={value}" for key, value in settings.items())
        self._consumers[name] = self._spawn(f"consumer-{name}", PROGRAM.stem, *given)

    def close(self, name: str) -> None:
        """Close a consumer in order, and wait for its end."""
        process = self._consumers.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(COMMAND_S)

    def kill(self, name: str) -> None:
        """Kill a consumer: its session expires."""
        process = self._consumers.pop(name)
        process.kill()
        process.wait(COMMAND_S)

    def grow(self, count: int) -> None:
        """Add partitions to the topic."""
        self._partitions += count
        self._topic("--alter")

    def owners(self) -> dict[str, list[int]]:
        """Return the partitions of each registered consumer, by their ephemeral nodes."""
        names: dict[str, str] = {}
        owned: dict[str, list[int]] = defaultdict(list)
        session = ""
        for line in self._ask("dump").partition("ephemeral nodes dump:")[2].splitlines():
            if found := SESSION.match(line):
                session = found[1]
            elif found := REGISTERED.match(line):
                names[session] = found[1]
            elif found := OWNED.match(line):
                owned[session].append(int(found[1]))
        return {name: sorted(owned[each]) for each, name in names.items()}

    def rebalances(self) -> Counter[str]:
        """Return how many times each consumer has begun to rebalance; its retries do not count."""
        return Counter({name: len(BEGUN.findall(log)) for name, log in self._logs()})

    def notifications(self) -> int:
        """Return how many events of changed nodes the consumers have received."""
        return sum(len(NOTIFIED.findall(log)) for _, log in self._logs())

    def watchers(self, path: str) -> int:
        """Return how many sessions watch a path."""
        lines = self._ask("wchp").splitlines()
        count = 0
        for line in lines[lines.index(path) + 1 :] if path in lines else ():
            if not line.startswith("\t"):
                break
            count += 1
        return count

    def tail(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"{each.name}:\n{each.read_text()[-2_000:]}" for each in self._folder.glob("*.log"))

    def _logs(self) -> Iterable[tuple[str, str]]:
        for each in self._folder.glob("consumer-*.log"):
            yield each.stem.removeprefix("consumer-"), each.read_text(errors="replace")

    def _topic(self, *options: str) -> None:
        command = ("kafka.admin.TopicCommand", "--zookeeper", self._zookeeper, "--topic", "t")
        run(*self._java, *command, "--partitions", str(self._partitions), *options, timeout_s=COMMAND_S)

    def _written(self, name: str, properties: dict[str, object] | dict[str, str]) -> Path:
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._java, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # in its own session: an interrupted test ends it in its own way
                start_new_session=True,
            )
        self._stack.callback(_end, process)
        return process

    def _ask(self, word: str) -> str:
        """Return ZooKeeper's response to a command of four letters, "" if it does not listen."""
        answer = bytearray()
        try:
            with socket.create_connection(("127.0.0.1", self._keeper_port), COMMAND_S) as link:
                link.sendall(word.encode())
                while piece := link.recv(65_536):
                    answer += piece
        except (ConnectionRefusedError, ConnectionResetError):
            pass
        return answer.decode()


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.kill()
    process.wait(END_S)
