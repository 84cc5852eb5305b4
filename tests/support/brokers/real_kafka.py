"""A running Apache Kafka: nodes on loopback, with their ZooKeeper where needed, stopped by their own pid."""

from __future__ import annotations

import base64
import re
import shutil
import socket
import subprocess
import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Self

from brokers.kafka_releases import NEWEST, jars, run
from koordinator.client.admin import Admin
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import ClientError, Failure, RequiredVersion
from koordinator.client.groups import describe
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from brokers.kafka_releases import Release
    from koordinator.wire.messages.metadata import MetadataResponseTopic

FORMAT_S = 120
READY_S = 120
"""Time limit for groups to be available on a busy machine; usually five seconds."""

LOOK_S = 0.2
"""The polling interval."""

TRY_S = 2
"""Time limit of one poll."""

TOPIC_S = 60
END_S = 60
TRIES = 3
"""Starts in case another process takes the port between its choice and its use."""

TAIL = 60
"""Lines of the log in an error message."""

JVM = (
    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"),
    *(
        f"-Dorg.slf4j.simpleLogger.{each}"
        for each in ("logFile=System.out", "showDateTime=true", "dateTimeFormat=HH:mm:ss,SSS")
    ),
)
"""Little memory and a quick start rather than top speed; the log goes to stdout."""

SETTINGS = {
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
"""One replica. All other settings are Kafka's defaults."""

STARTED = re.compile(r"Kafka Server started|\[KafkaServer id=\d\] started")
"""Logged once the port is bound; before, another broker may have taken it."""

COMMIT_ID = re.compile(r"Kafka commitId: (\S+)")


class RealKafka:
    """A running broker. `log` is the file with its output.

    Args:
        folder: for its configuration, data and log; must exist and be empty.
        release: of Apache Kafka.
        settings: of the broker; they override those of the release and SETTINGS. `broker.rack` has the racks of all
            nodes, separated by commas.
        joined: the node 1 of its cluster, for a node 2; its controller and ZooKeeper are those of node 1.
    """

    def __init__(
        self,
        folder: Path,
        release: Release = NEWEST,
        settings: Mapping[str, str] | None = None,
        joined: RealKafka | None = None,
    ) -> None:
        self.release = release
        self.node_id = 2 if joined else 1
        self.log = folder / "broker.log"
        self.address = Address("127.0.0.1", 0)
        self._folder = folder
        self._joined = joined
        self._cluster_id = (
            joined._cluster_id if joined else base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        )
        self._settings = {**SETTINGS, **release.settings, **(settings or {}), "log.dirs": f"{folder}/data/broker"}
        if racks := self._settings.get("broker.rack"):
            self._settings["broker.rack"] = racks.split(",")[self.node_id - 1]
        self._java = ("java", *JVM, "-cp", f"{jars(release.version)}/*")
        self._properties: dict[str, str] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

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
        """The bootstrap address, host:port."""
        return str(self.address)

    @property
    def commit_id(self) -> str:
        """The build commit that the broker reports."""
        said = COMMIT_ID.search(self.log.read_text(errors="replace"))
        assert said, f"Kafka {self.release.version} does not say its commit; its log begins with:\n{self.tail(0)}"
        return said[1]

    def start(self, *, alone: bool = True) -> None:
        """Start the broker from scratch and wait until it coordinates groups, unless it is not `alone`."""
        for _ in range(TRIES):
            self._launch()
            if self._is_ready(with_groups=alone):
                return
            if "Address already in use" not in self.log.read_text(errors="replace"):
                break
            self.stop()
            shutil.rmtree(self._folder / "data")
        raise AssertionError(f"Kafka {self.release.version} is not there; its log ends with:\n{self.tail(0)}")

    def restart(self, settings: Mapping[str, str] | None = None, *, crash: bool = False) -> None:
        """Restart the broker on its old port and data; `settings` apply to this start.

        `crash`: with SIGKILL. ZooKeeper then takes it for alive and rejects it until its session expires.
        """
        self.end(crash=crash)
        self.start_again(settings, crashed=crash)

    def start_again(self, settings: Mapping[str, str] | None = None, *, crashed: bool = False) -> None:
        """Start the broker after `end`, on its old port and data."""
        properties = self._written("server", self._properties | (settings or {}))
        self._spawn("broker", "kafka.Kafka", properties)
        deadline = Deadline(READY_S)
        while not self._is_ready():
            not_yet = crashed and deadline.left() and "NodeExists" in self.log.read_text(errors="replace")
            assert not_yet, f"Kafka {self.release.version} does not come back; its log ends with:\n{self.tail(0)}"
            self.end()
            self._spawn("broker", "kafka.Kafka", properties)

    def stop(self) -> None:
        """Stop the broker, then its ZooKeeper: with SIGTERM, and after a time limit with SIGKILL."""
        while self._processes:
            self.end()

    def end(self, *, crash: bool = False) -> None:
        """Stop the process started last: of a running node the broker."""
        process = self._processes.pop()
        if not crash:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                crash = True
        if crash:
            process.kill()
            process.wait(END_S)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic and wait until all its partitions have a leader."""
        with (
            Admin((self.address,), TOPIC_S, "1") as admin,
            closing(BrokerConnection(self.address, admin.deadline, "1")) as link,
        ):
            row = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            request = CreateTopicsRequest(topics=(row,))
            answer = link.send(
                request, link.version(RequiredVersion(ApiKey.CREATE_TOPICS, 0, "0.10.1")), CreateTopicsResponse
            )
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
        port, other = free_ports()
        self.address = Address("127.0.0.1", port)
        # the port of the controller, or of ZooKeeper
        self._port = self._joined._port if self._joined else other
        if self.release.has_kraft:
            self._properties = self._settings | self._kraft()
            properties = self._written("server", self._properties)
            # with = between them, because an id may begin with -
            arguments = ("format", "--config", str(properties), f"--cluster-id={self._cluster_id}")
            run(*self._java, "kafka.tools.StorageTool", *arguments, timeout_s=FORMAT_S)
        else:
            self._properties = self._settings | self._with_zookeeper()
            properties = self._written("server", self._properties)
            if self._joined is None:
                keeper = self._written("zookeeper", _zookeeper(other, self._folder))
                self._spawn("zookeeper", "org.apache.zookeeper.server.ZooKeeperServerMain", keeper)
        self._spawn("broker", "kafka.Kafka", properties)

    def _written(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _spawn(self, name: str, main: str, properties: Path) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self._java, main, str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                # in its own session: an interrupted test stops it in its own way
                start_new_session=True,
            )
        self._processes.append(process)

    def _is_ready(self, *, with_groups: bool = True) -> bool:
        deadline = Deadline(READY_S)
        while deadline.left():
            if STARTED.search(self.log.read_text(errors="replace")) and (not with_groups or self._has_groups()):
                return True
            try:
                self._processes[-1].wait(LOOK_S)
            except subprocess.TimeoutExpired:
                continue
            return False
        return False

    def _has_groups(self) -> bool:
        """Whether groups are available: the broker has to create their topic first."""
        with Admin((self.address,), TRY_S, "1") as admin:
            try:
                found = describe(admin, ["ready"])["ready"]
            except ClientError:
                return False
        return isinstance(found, Failure) and found.code == Error.GROUP_ID_NOT_FOUND

    def _kraft(self) -> dict[str, str]:
        """Return the settings of a combined broker and controller, or of a broker."""
        listeners = {"broker": f"PLAINTEXT://{self.address}"}
        if self._joined is None:
            listeners["controller"] = f"CONTROLLER://127.0.0.1:{self._port}"
        return {
            "process.roles": ",".join(listeners),
            "node.id": f"{self.node_id}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners.values()),
            "controller.quorum.voters": f"1@127.0.0.1:{self._port}",
        }

    def _with_zookeeper(self) -> dict[str, str]:
        return {
            "broker.id": f"{self.node_id}",
            "listeners": f"PLAINTEXT://{self.address}",
            "zookeeper.connect": f"127.0.0.1:{self._port}",
            # a busy machine is slow, not wrong
            "zookeeper.connection.timeout.ms": f"{READY_S * 1000}",
        }


def _zookeeper(port: int, folder: Path) -> dict[str, str]:
    return {
        "dataDir": f"{folder}/data/zookeeper",
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }


def _has_leaders(topics: Sequence[MetadataResponseTopic], partitions: int) -> bool:
    rows = [row for topic in topics for row in topic.partitions]
    return len(rows) == partitions and all(row.error_code == Error.NONE for row in rows)


def free_ports() -> tuple[int, int]:
    with ExitStack() as stack:
        held = [stack.enter_context(closing(socket.create_server(("127.0.0.1", 0)))) for _ in range(2)]
        one, two = (each.getsockname()[1] for each in held)
    return one, two
