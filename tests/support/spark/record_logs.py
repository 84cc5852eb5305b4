"""Record logs of real brokers and clients under churn, by hand: `python -m spark.record_logs 4.3 …`.

Dynamic and static members of all clients join, leave, crash and return. Hand-written members never use their id, miss
a join phase, or do not sync. The logs go to tests/pipeline/logs/RELEASE/. Needs Java, and Maven for the jars.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Self

from brokers.kafka_releases import CACHE, NEWEST, RELEASES, jars, run
from brokers.real_kafka import RealKafka

from koordinator.client.admin import Admin
from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.client.errors import Failure, RequiredVersion
from koordinator.client.groups import describe
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from spark.log_rows import LOGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from brokers.kafka_releases import Release

CLIENTS = Path(__file__).parents[1] / "clients"

WAIT_S = 60
POLL_S = 0.1

SESSION_MS = 2_000
"""Timeout of dynamic members, short so that dead members are removed soon."""

STATIC_SESSION_MS = 6_000
"""Timeout of static members, long enough for their return."""

SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "500"}

LAYOUT = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
"""The layout of Kafka's own config/log4j.properties (log4j2.yaml since 4.0)."""

APPENDER = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>koordinator.tests</groupId><artifactId>log</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version>
  </dependency></dependencies>
</project>
"""

RECORD_START = re.compile(r"[\[%]?\d")
"""Start of a line that does not continue another."""

KEPT_BROKER_LINES = re.compile(r"coordinator\.[\w.]+\)|KafkaServer\)|BrokerServer\)|(reason: .*|group [\w-]+)$")

DROPPED_CLIENT_LINES = re.compile(
    r"values:|GET_ASSIGNMENT|DUMP|kafka\.(net|cluster)|(AbstractConfig|AppInfoParser|Metrics)\)|Metadata\)"
)

PATHS = re.compile(r"/[\w.+-]+(?:/[\w.+-]+)+/([\w.]+)")


class LoggingKafka(RealKafka):
    """A broker that logs like an installed one."""

    def __init__(self, folder: Path, release: Release) -> None:
        super().__init__(folder, release, SETTINGS)
        self._java = (*self._java[:-2], *log4j(folder), "-cp", class_path(release))


def appender() -> Path:
    """Resolve the jars of log4j's successor, which Kafka does not contain."""
    folder = CACHE / "reload4j"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as work:
            Path(work, "pom.xml").write_text(APPENDER)
            run("mvn", "-q", "-B", "-f", f"{work}/pom.xml", *GOAL, f"-DoutputDirectory={folder}", timeout_s=600)
    return folder


GOAL = ("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies", "-DincludeScope=runtime")


def class_path(release: Release) -> str:
    """Return the class path of the release with its logging library."""
    others = [path for path in jars(release.version).glob("*.jar") if not path.name.startswith("slf4j-simple")]
    return ":".join(map(str, (*appender().glob("*.jar"), *others)))


def log4j(folder: Path) -> tuple[str, ...]:
    """Return Java's options for the layout."""
    (folder / "log4j.properties").write_text(LAYOUT)
    return (f"-Dlog4j.configuration=file:{folder}/log4j.properties", "-Duser.timezone=UTC")


class Clients:
    """Starts and ends members with one log each."""

    def __init__(self, kafka: RealKafka, folder: Path) -> None:
        self.kafka = kafka
        self.folder = folder
        self._all: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.die(*self._all)

    def start(self, kind: str, name: str, group: str, instance: str | None = None) -> subprocess.Popen[bytes]:
        """Start a member in its own process."""
        session_ms = STATIC_SESSION_MS if instance else SESSION_MS
        extra = {"group.id": group, "client.id": name, "session.timeout.ms": session_ms, "heartbeat.interval.ms": 300}
        config: dict[str, object] = {"bootstrap.servers": self.kafka.bootstrap_servers, **extra}
        if instance is not None:
            config["group.instance.id"] = instance
        if kind == "java":
            config["partition.assignment.strategy"] = ",".join(
                f"org.apache.kafka.clients.consumer.{name}Assignor" for name in ("Range", "RoundRobin")
            )
            given = [f"{key}={value}" for key, value in config.items()]
            options = (*log4j(self.folder), "-cp", class_path(self.kafka.release))
            command = ["java", *options, str(CLIENTS / "Consuming.java"), *given]
        else:
            if kind == "confluent-kafka":
                config |= {"debug": "cgrp"}
            else:
                config = {key.replace(".", "_"): value for key, value in config.items()}
            command = [sys.executable, "-m", "clients.logging_member", kind, json.dumps(config)]
        with (self.folder / f"{kind}-{name}.log").open("ab") as log:
            member = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._all.append(member)
        return member

    def leave(self, *members: subprocess.Popen[bytes]) -> None:
        """Stop members gracefully; dynamic ones leave their group."""
        for member in members:
            member.communicate(b"\n", timeout=WAIT_S)

    def die(self, *members: subprocess.Popen[bytes]) -> None:
        """Kill members."""
        for member in members:
            member.kill()
            member.wait(WAIT_S)

    def wait_settled(self, group: str, members: int, *, without: Collection[str] = ()) -> list[str]:
        """Wait until the group is stable or empty with this number of members, without those of `without`; return their
        ids.
        """
        deadline = Deadline(WAIT_S)
        while deadline.pause(POLL_S):
            with Admin((self.kafka.address,), WAIT_S, "1") as admin:
                description = describe(admin, [group])[group]
            if isinstance(description, Failure) or len(description.members) != members:
                continue
            ids = [member.member_id for member in description.members]
            if description.state == ("Stable" if members else "Empty") and not set(without).intersection(ids):
                return ids
        raise AssertionError(f"{group} has not come to {members} members within {WAIT_S} s: {description}")


def churn(clients: Clients) -> None:
    """Let members join and leave."""
    first = clients.start("kafka-python", "kp-1", "orders")
    clients.wait_settled("orders", 1)
    second = clients.start("confluent-kafka", "rd-1", "orders")
    clients.wait_settled("orders", 2)
    third = clients.start("java", "java-1", "orders")
    clients.wait_settled("orders", 3)
    fourth = clients.start("aiokafka", "aio-1", "orders")
    clients.wait_settled("orders", 4)
    clients.leave(first)
    clients.wait_settled("orders", 3)
    clients.die(second)
    clients.wait_settled("orders", 2)
    clients.leave(third, fourth)
    clients.wait_settled("orders", 0)


def bounces(clients: Clients) -> None:
    """Let static members return before their session expires, except one."""
    one = clients.start("kafka-python", "kp-s1", "billing", "s1")
    before = clients.wait_settled("billing", 1)
    two = clients.start("java", "java-s2", "billing", "s2")
    clients.wait_settled("billing", 2)
    clients.die(one)
    back = clients.start("kafka-python", "kp-s1b", "billing", "s1")
    clients.wait_settled("billing", 2, without=before)
    three = clients.start("confluent-kafka", "rd-3", "billing")
    clients.wait_settled("billing", 3)
    clients.leave(two)
    clients.wait_settled("billing", 2)
    clients.leave(three, back)
    clients.wait_settled("billing", 0)


def stubborn(kafka: RealKafka) -> None:
    """Use an id never, then miss a join phase, then miss a SyncGroup."""

    def join(member_id: str = "", session_ms: int = 3 * SESSION_MS) -> str:
        with closing(BrokerConnection(kafka.address, Deadline(WAIT_S), "1", "by-hand")) as link:
            request = JoinGroupRequest(
                group_id="stubborn",
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=SESSION_MS,
                member_id=member_id,
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
                reason="by hand,\nin two lines",
            )
            return link.send(
                request, link.version(RequiredVersion(ApiKey.JOIN_GROUP, 4, "2.2")), JoinGroupResponse
            ).member_id

    one, two, _ = join(), join(), join(session_ms=SESSION_MS)
    join(one)
    # the first member does not rejoin and is removed; then the second does not sync
    join(two)
    # up to 2.7 there is no timeout for SyncGroup
    last = "Stabilized group stubborn generation 2" if kafka.release.line == "2.4" else "Group stubborn with generation"
    deadline = Deadline(WAIT_S)
    while deadline.pause(POLL_S):
        if all(text in kafka.log.read_text() for text in (last, "Pending member")):
            return
    raise AssertionError(f"stubborn is not empty:\n{kafka.tail(0)}")


def record(release: Release) -> None:
    """Run the scenarios against a broker of a release, and keep the logs."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, "kafka")
        folder.mkdir()
        with LoggingKafka(folder, release) as kafka:
            kafka.create_topic("t", 4)
            with Clients(kafka, Path(work)) as clients, ThreadPoolExecutor() as threads:
                plays = [threads.submit(churn, clients), threads.submit(bounces, clients)]
                for each in (*plays, threads.submit(stubborn, kafka)):
                    each.result()
        to = LOGS / release.name
        to.mkdir(parents=True, exist_ok=True)
        # of older releases only the brokers, and the clients shipped with them
        clients_logs = Path(work).glob("*.log" if release == NEWEST else "java-*.log")
        for log in (folder / "broker.log", *clients_logs):
            name = "server.log" if log.name == "broker.log" else log.name
            (to / name).write_text("".join(kept(name, log.read_text().splitlines(keepends=True))))


def kept(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Remove paths of this machine, and most lines that do not concern groups."""
    keeps = True
    for line in lines:
        if RECORD_START.match(line):
            is_brokers = name == "server.log"
            keeps = bool(KEPT_BROKER_LINES.search(line)) if is_brokers else not DROPPED_CLIENT_LINES.search(line)
        if keeps:
            yield PATHS.sub(r"\1", line)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(RELEASES[name])
