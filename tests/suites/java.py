"""Kafka's own applications on the emulator: verifiable clients, Streams, Connect and MirrorMaker 2."""

from __future__ import annotations

import json
import signal
import socket
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from apps import Instance, wait_until
from brokers.kafka_releases import COMPLETE, NEWEST, jars

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator import Cluster

JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")

SIGTERM_STATUS = 143
"""The exit status of a virtual machine that SIGTERM has ended in order."""


class Programs:
    """The Java programs of one play; all are ended with it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.folder = Path(stack.enter_context(TemporaryDirectory()))
        self._count = 0

    def start(self, artifact: str, main: str, *arguments: str) -> Instance:
        """Start a main class of an artifact of Kafka."""
        self._count += 1
        release = NEWEST if artifact == "kafka-tools" else COMPLETE
        command = ["java", *JVM, "-cp", f"{jars(release.version, artifact)}/*", main, *arguments]
        instance = Instance(command, self.folder, self.folder / f"{self._count}.log")
        self._stack.callback(instance.end, signal.SIGKILL)
        return instance

    def properties(self, name: str, values: Mapping[str, object]) -> str:
        """Write a properties file; return its path."""
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return str(path)


def ended(*instances: Instance) -> None:
    """End programs with SIGTERM; AssertionError if one does not end in order."""
    statuses = [each.end() for each in instances]
    assert set(statuses) <= {0, SIGTERM_STATUS}, (statuses, [each.errors for each in instances])


def verifiable(cluster: Cluster, programs: Programs) -> str:
    """Two consumers share a topic that a producer writes to; one of them ends."""
    cluster.create_topic("t", 4)
    servers = ("--bootstrap-server", cluster.bootstrap_servers)
    group = cluster.group("verified")

    def consumer() -> Instance:
        main = "org.apache.kafka.tools.VerifiableConsumer"
        return programs.start("kafka-tools", main, *servers, "--topic", "t", "--group-id", group.id)

    def consumed(*instances: Instance) -> int:
        events = (json.loads(line) for each in instances for line in each.lines if line.startswith("{"))
        return sum(event["count"] for event in events if event["name"] == "records_consumed")

    def produce(count: int) -> None:
        main = "org.apache.kafka.tools.VerifiableProducer"
        producer = programs.start("kafka-tools", main, *servers, "--topic", "t", "--max-messages", str(count))
        assert producer.end(None) == 0, producer.errors

    one, two = consumer(), consumer()
    wait_until("two members", lambda: len(group.members) == 2 and group.state == "Stable", one, two)
    produce(500)
    wait_until("500 records", lambda: consumed(one, two) >= 500, one, two)
    ended(one)
    wait_until("one member", lambda: len(group.members) == 1 and group.state == "Stable", two)
    produce(500)
    wait_until("1,000 records", lambda: consumed(one, two) >= 1000, one, two)
    ended(two)
    committed = sum(group.offsets.values())
    assert (group.state, committed) == ("Empty", 1000), (group.state, committed)
    return f"{consumed(one, two)} records consumed, 1000 committed"


def wordcount(cluster: Cluster, programs: Programs) -> str:
    """Streams' WordCountDemo, to which a second instance is added."""
    source, output = "streams-plaintext-input", "streams-wordcount-output"
    cluster.create_topic(source, 4)
    cluster.create_topic(output, 1)
    group = cluster.group("words")

    def instance(number: int) -> Instance:
        values = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "application.id": group.id,
            "state.dir": programs.folder / str(number),
            "commit.interval.ms": 100,
            "replication.factor": 1,
        }
        main = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
        return programs.start("kafka-streams-examples", main, programs.properties(f"words{number}", values))

    def produce() -> None:
        cluster.produce(source, *({"value": "all streams lead to kafka", "partition": each % 4} for each in range(40)))

    def counted(word: str) -> int:
        values = (int.from_bytes(row.value or b"") for row in cluster.records(output) if row.key == word.encode())
        return max(values, default=0)

    one = instance(1)
    wait_until("a member", lambda: len(group.members) == 1 and group.state == "Stable", one)
    produce()
    wait_until("40 words", lambda: counted("kafka") == 40, one)
    two = instance(2)
    wait_until("two members", lambda: len(group.members) == 2 and group.state == "Stable", one, two)
    produce()
    wait_until("80 words", lambda: counted("kafka") == 80, one, two)
    ended(one)
    produce()
    wait_until("120 words", lambda: counted("kafka") == 120, two)
    ended(two)
    return "every word counted through a scale-out and a scale-in"


def connect(cluster: Cluster, programs: Programs) -> str:
    """Two distributed workers copy a file into a topic; one is killed, and the other takes its task over."""
    lines = programs.folder / "lines.txt"
    lines.write_text("".join(f"line {each}\n" for each in range(50)))
    group = cluster.group("workers")

    def worker(port: int) -> Instance:
        values = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group.id,
            "listeners": f"http://127.0.0.1:{port}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "scheduled.rebalance.max.delay.ms": 0,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "offset.flush.interval.ms": 200,
            "plugin.discovery": "service_load",
            **{f"{each}.storage.topic": f"connect-{each}" for each in ("config", "offset", "status")},
            **{f"{each}.storage.replication.factor": 1 for each in ("config", "offset", "status")},
            "plugin.path": jars(COMPLETE.version, "connect-file"),
        }
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        path = programs.properties(f"worker{port}", values)
        return programs.start("connect-runtime", main, path)

    one, two = (free_port() for _ in range(2))
    workers = {port: worker(port) for port in (one, two)}
    wait_until("two workers", lambda: len(group.members) == 2 and group.state == "Stable", *workers.values())
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(lines),
        "topic": "lines",
    }
    _until(lambda: _rest(one, "/connectors", {"name": "file", "config": config}), *workers.values())

    def values() -> set[bytes | None]:
        return {row.value for row in cluster.records("lines")} if "lines" in _topics(cluster) else set()

    wait_until("50 lines", lambda: len(values()) == 50, *workers.values())

    def tasks() -> list[str]:
        return [task["worker_id"] for task in _rest(one, "/connectors/file/status")["tasks"]]

    _until(tasks, *workers.values())
    holder = int(tasks()[0].rpartition(":")[2])
    survivor = two if holder == one else one
    workers[holder].end(signal.SIGKILL)
    wait_until("one worker", lambda: len(group.members) == 1 and group.state == "Stable", workers[survivor])
    with lines.open("a") as file:
        file.writelines(f"line {each}\n" for each in range(50, 100))
    wait_until("100 lines", lambda: len(values()) == 100, workers[survivor])
    ended(workers[survivor])
    return "the surviving worker took the task over, and every line arrived"


def mirror(cluster: Cluster, programs: Programs) -> str:
    """MirrorMaker 2 copies a topic and a group's offsets to a second cluster."""
    with Emulator() as target:
        cluster.create_topic("orders", 2)
        cluster.produce("orders", *({"value": f"v{each}", "partition": each % 2} for each in range(20)))
        cluster.group("svc").set_offsets({("orders", 0): 10, ("orders", 1): 10})
        values: dict[str, object] = {
            "clusters": "a, b",
            "a.bootstrap.servers": cluster.bootstrap_servers,
            "b.bootstrap.servers": target.bootstrap_servers,
            "a->b.enabled": "true",
            "b->a.enabled": "false",
            "a->b.topics": "orders",
            "replication.factor": 1,
            "a->b.sync.group.offsets.enabled": "true",
            "a->b.sync.group.offsets.interval.seconds": 1,
            "a->b.emit.checkpoints.interval.seconds": 1,
            "a->b.refresh.topics.interval.seconds": 1,
            "a->b.refresh.groups.interval.seconds": 1,
            "tasks.max": 1,
            "dedicated.mode.enable.internal.rest": "false",
            **{f"{each}.topic.replication.factor": 1 for each in ("checkpoints", "heartbeats", "offset-syncs")},
            **{f"{each}.storage.replication.factor": 1 for each in ("config", "offset", "status")},
        }
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        maker = programs.start("connect-mirror", main, programs.properties("mirror", values))

        def copied() -> int:
            return len(target.records("a.orders")) if "a.orders" in _topics(target) else 0

        wait_until("20 records", lambda: copied() == 20, maker)
        cluster.produce("orders", *({"value": f"v{each}", "partition": each % 2} for each in range(20, 40)))
        wait_until("40 records", lambda: copied() == 40, maker)
        offsets = target.group("svc")
        wait_until("the group's offsets", lambda: len(offsets.offsets) == 2, maker)
        ended(maker)
    return "40 records and the offsets of a group copied"


def _topics(cluster: Cluster) -> set[str]:
    return {topic.name for topic in cluster.topics()}


def free_port() -> int:
    """Return a port that nothing uses."""
    with closing(socket.create_server(("127.0.0.1", 0))) as held:
        port: int = held.getsockname()[1]
    return port


def _rest(port: int, path: str, body: object = None) -> dict[str, list[dict[str, str]]]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - on loopback
        found: dict[str, list[dict[str, str]]] = json.load(answer)
    return found


def _until(ask: Callable[[], Iterable[object]], *instances: Instance) -> None:
    """Repeat a request until it has a result: workers refuse them during a rebalance."""

    def succeeds() -> bool:
        try:
            return bool(ask())
        except urllib.error.URLError:
            return False

    wait_until("an answer of Connect", succeeds, *instances)


PLAYS = {"verifiable": verifiable, "wordcount": wordcount, "connect": connect, "mirror": mirror}


def played(name: str) -> str:
    """Play an application; return what was seen. AssertionError if it does not work."""
    with Emulator() as cluster, ExitStack() as stack:
        return PLAYS[name](cluster, Programs(stack))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PLAYS:
        sys.stdout.write(f"{chosen}: {played(chosen)}\n")
