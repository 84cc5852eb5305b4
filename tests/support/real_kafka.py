"""A real Apache Kafka: fetched with Maven, run on loopback as one process, stopped by its own pid.

What is fetched is kept under build/kafka, a folder for each version; `make clean` removes it.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import tempfile
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Self

from koordinator.client.admin import Admin
from koordinator.client.groups import describe
from koordinator.client.link import Address, Link
from koordinator.client.problems import ClientError, Need, Refusal
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from koordinator.wire.messages.metadata import MetadataResponseTopic

CACHE = Path(__file__).parents[2] / "build" / "kafka"

NEWEST = "4.3.1"
"""The newest release whose parts are all in Maven Central: of 4.4.0, kafka-tools-api is missing."""

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

FETCH_S = 600
"""How long fetching may take. It is done once."""

FORMAT_S = 120
READY_S = 120
"""How long it may take on a busy machine until groups can be asked for; usually it is five seconds."""

TRY_S = 2
"""How long one look whether it is ready may take."""

TOPIC_S = 30
END_S = 30
TRIES = 3
"""The ports were free a moment before the broker takes them; it is started again if somebody was quicker."""

TAIL = 60
"""How many lines of the log are told when the broker is not there."""

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>koordinator.tests</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""

LOGGING = """
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""

JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
"""Little memory, and a quick start rather than the highest speed."""

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""One node that is broker and controller at once. Everything else is as Kafka has it."""


def jars(version: str) -> Path:
    """The folder with the jars of a release, fetched if they are not there yet."""
    folder = CACHE / version
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            pom = Path(work, "pom.xml")
            pom.write_text(POM.format(version=version))
            goal = f"{DEPENDENCY_PLUGIN}:copy-dependencies"
            options = ("-DincludeScope=runtime", f"-DoutputDirectory={work}/jars")
            _run("mvn", "--batch-mode", "--quiet", "--file", str(pom), goal, *options, timeout_s=FETCH_S)
            # all at once: a folder that is there is complete, also for another process that fetches
            try:
                Path(work, "jars").rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return folder


class RealKafka:
    """A running broker. `log` is the file with what it says.

    Args:
        folder: for its configuration, its data and its log; must exist and be empty.
        version: a release of Apache Kafka.
        settings: of the broker, beside and before SETTINGS.
    """

    def __init__(self, folder: Path, version: str = NEWEST, settings: Mapping[str, str] | None = None) -> None:
        self.version = version
        self.log = folder / "broker.log"
        self.address = Address("127.0.0.1", 0)
        self._folder = folder
        self._settings = {**SETTINGS, "log.dirs": str(folder / "data"), **(settings or {})}
        logging = f"-Dlog4j2.configurationFile={folder}/log4j2.properties"
        self._java = ("java", *JVM, logging, "-cp", f"{jars(version)}/*")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Where to begin: host:port."""
        return str(self.address)

    def start(self) -> None:
        """Format its log directory, start it, and wait until it coordinates groups."""
        (self._folder / "log4j2.properties").write_text(LOGGING)
        for _ in range(TRIES):
            self._launch()
            if self._is_ready():
                return
            if "Address already in use" not in self.log.read_text():
                break
            self.stop()
            shutil.rmtree(self._folder / "data")
        raise AssertionError(f"Kafka {self.version} is not there; its log ends with:\n{self.tail(0)}")

    def stop(self) -> None:
        """End the process: with SIGTERM, and if that takes too long, with SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, and wait until all its partitions have a leader."""
        with Admin((self.address,), TOPIC_S, "1") as admin, closing(Link(self.address, admin.deadline, "1")) as link:
            row = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            request = CreateTopicsRequest(topics=(row,))
            answer = link.ask(request, link.version(Need(ApiKey.CREATE_TOPICS, 0, "0.10.1")), CreateTopicsResponse)
            assert [each.error_code for each in answer.topics] == [Error.NONE], answer
            while not _has_leaders(admin.topics([name]).topics, partitions):
                assert admin.deadline.left(), f"topic {name} is made, and nobody leads it"

    def tail(self, start: int) -> str:
        """The last lines of its log after the byte `start`."""
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-TAIL:])

    def _launch(self) -> None:
        port, controller = _free_ports()
        self.address = Address("127.0.0.1", port)
        places = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        }
        properties = self._folder / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in {**self._settings, **places}.items()))
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # with = between them, because an id may begin with -
        arguments = ("kafka.tools.StorageTool", "format", "--config", str(properties), f"--cluster-id={cluster_id}")
        _run(*self._java, *arguments, timeout_s=FORMAT_S)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                # not with the terminal: an interrupted test stops it in its own way
                start_new_session=True,
            )

    def _is_ready(self) -> bool:
        assert self._process is not None
        for _ in range(READY_S // TRY_S):
            with Admin((self.address,), TRY_S, "1") as admin:
                try:
                    found = describe(admin, ["ready"])["ready"]
                except ClientError:
                    found = None
            # it has to make the topic of the groups first
            if isinstance(found, Refusal) and found.code == Error.GROUP_ID_NOT_FOUND:
                return True
            try:
                self._process.wait(TRY_S / 4)
            except subprocess.TimeoutExpired:
                continue
            return False
        return False


def _has_leaders(topics: Sequence[MetadataResponseTopic], partitions: int) -> bool:
    rows = [row for topic in topics for row in topic.partitions]
    return len(rows) == partitions and all(row.error_code == Error.NONE for row in rows)


def _run(*command: str, timeout_s: float) -> None:
    ran = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}\n{ran.stderr}"


def _free_ports() -> tuple[int, int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as one, closing(socket.create_server(("127.0.0.1", 0))) as two:
        return one.getsockname()[1], two.getsockname()[1]
