"""Kafka's command-line tools: every step of `steps.txt` on a broker and on the emulator, outputs compared."""

from __future__ import annotations

import difflib
import json
import re
import shlex
import subprocess
import threading
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from brokers.kafka_releases import NEWEST, jars

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokers.real_kafka import RealKafka

HERE = Path(__file__).parent

WAITS_S = (0, 1, 2)
"""Pauses before the tries of a step that reads: a broker may not know yet what a controller has done."""

READS = re.compile(r"--describe|--list|get-offsets")

STEP_S = 180
"""Time limit of a step."""

CLASSES = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-share-consumer": "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-e2e-latency": "EndToEndLatency",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-reassign-partitions": "reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "ReplicaVerificationTool",
    "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-streams-application-reset": "StreamsResetter",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-verifiable-producer": "VerifiableProducer",
    "kafka-verifiable-share-consumer": "VerifiableShareConsumer",
}
"""The class of each tool, in `org.apache.kafka.tools`."""

MEASURES = (
    "kafka-consumer-perf-test",
    "kafka-e2e-latency",
    "kafka-producer-perf-test",
    "kafka-share-consumer-perf-test",
)
"""Tools whose numbers are measurements."""

FILES = {
    "offsets.csv": '"orders",0,1\n',
    "records.json": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 1}]},
    "topics.json": {"version": 1, "topics": [{"topic": "orders"}]},
    "reassignment.json": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]},
}

MASKS = (
    (re.compile(r"^(\s+at |\s*\.\.\. \d+ more|Caused by: ).*\n?", re.MULTILINE), ""),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"(?<![\w-])(?=\w*[0-9A-Z_-])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,:]\d+)?Z?"), "TIME"),
    (re.compile(r"\b1[5-9]\d{11}\b"), "MILLIS"),
    (re.compile(r"/(?:tmp|[\w.-]+/)[\w./-]+"), "PATH"),
)


@dataclass
class Result:
    """The exit status of a step, and its output without the values of this machine."""

    status: int
    output: str


class ToolRunner:
    """A Java process that runs tools against one cluster."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._servers, self._folder = servers, folder
        for name, content in FILES.items():
            folder.joinpath(name).write_text(content if isinstance(content, str) else json.dumps(content))
        path = f"{jars(NEWEST.version, 'kafka-tools')}/*:{jars(NEWEST.version)}/*"
        options = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", *options, quiet, "-cp", path, str(HERE / "Tools.java")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._process:
            pass

    def run(self, step: str) -> Result:
        """Run a step. AssertionError if it has not ended in STEP_S."""
        command, _, stdin = step.partition(" <<< ")
        tool, *words = shlex.split(command)
        arguments = [word.format(b=self._servers, f=self._folder) for word in words]
        if "{b}" not in command:
            options = (n for n, word in enumerate(arguments) if word.startswith("--"))
            at = 0 if tool in FIRST else next(options, len(arguments))
            arguments[at:at] = ["--bootstrap-server", self._servers]
        line = [
            f"org.apache.kafka.tools.{CLASSES[tool]}",
            b64encode(stdin.replace("\\n", "\n").encode()).decode(),
            *arguments,
        ]
        watchdog = threading.Timer(STEP_S, self._process.kill)
        watchdog.start()
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write("\t".join(line) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline().rstrip("\n").split("\t")
        finally:
            watchdog.cancel()
        assert len(answer) == 3, f"no end within {STEP_S} s: {step}"
        output = "".join(b64decode(each).decode() for each in answer[1:])
        return Result(int(answer[0]), self._masked(output, numbers=tool in MEASURES))

    def _masked(self, output: str, *, numbers: bool) -> str:
        host, _, port = self._servers.rpartition(":")
        output = output.replace(self._servers, "BROKER").replace(port, "PORT").replace(host, "HOST")
        for pattern, word in MASKS:
            output = pattern.sub(word, output)
        if numbers:
            output = re.sub(r"[\d.]+(?:E-?\d+)?|NaN", "N", output)
        return "".join(f"{line}\n" for line in sorted(line.rstrip() for line in output.splitlines()) if line)


FIRST = ("kafka-features", "kafka-metadata-quorum", "kafka-transactions")
"""Tools that take the address before their subcommand."""


def steps() -> list[str]:
    """Return the steps."""
    lines = (HERE / "steps.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def compared(kafka: RealKafka, folder: Path) -> Iterator[tuple[str, str]]:
    """Play every step to both, and yield it with the difference; "" if there is none."""
    places = [folder / "kafka", folder / "emulator"]
    for place in places:
        place.mkdir()
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
    settings |= dict.fromkeys(("offsets.topic.replication.factor", "transaction.state.log.replication.factor"), "1")
    with (
        Emulator(broker_ids=[1], profile="kafka-defaults", config=settings) as cluster,
        ToolRunner(kafka.bootstrap_servers, places[0]) as there,
        ToolRunner(cluster.bootstrap_servers, places[1]) as here,
    ):
        for step in steps():
            difference = ""
            for wait_s in WAITS_S if READS.search(step) else WAITS_S[:1]:
                time.sleep(wait_s)
                difference = _difference(there.run(step), here.run(step))
                if not difference:
                    break
            yield step, difference


def _difference(wanted: Result, found: Result) -> str:
    texts = [f"exit status {each.status}\n{each.output}".splitlines() for each in (wanted, found)]
    return "\n".join(difflib.unified_diff(*texts, "Kafka", "koordinator", lineterm="", n=0))
