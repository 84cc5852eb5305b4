"""The releases of Apache Kafka for comparisons, and the location of their jars.

Maven fetches the jars into build/kafka, a folder per version; `make clean` removes them.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from brokers.maven import local_repository

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE = Path(__file__).parents[3] / "build" / "kafka"

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

FETCH_S = 600
"""Time limit of a fetch, which happens once."""

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>koordinator.tests</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
  <!-- where the POMs of Spark look first, and fail where they cannot: here it is empty, and Maven goes on -->
  <repositories>
    <repository>
      <id>gcs-maven-central-mirror</id>
      <url>file:///nothing/is/there</url>
    </repository>
  </repositories>
</project>
"""

DEPENDENCY = """    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>
    </dependency>"""

LOG_WRITER = "org.slf4j:slf4j-simple:1.7.36"
"""A log backend for Kafka's log interface; it needs no file and suits all releases."""

KRAFT_SINCE = (3, 3)
"""The first release with production-ready KRaft (KIP-833); earlier ones run with ZooKeeper."""


@dataclass(frozen=True)
class Release:
    """One column of the comparison.

    Attributes:
        name: unique, "3.9-new"; goldens are stored under it.
        version: in Maven Central, "3.9.2".
        coordinator: the Scala one, OLD, or the Java one, NEW.
        settings: that select the coordinator.
        recorded: the beginning of the numbers of the scenarios with golden answers; "" for all.
    """

    name: str
    version: str
    coordinator: Literal["OLD", "NEW"]
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    recorded: str = ""

    @property
    def line(self) -> str:
        """The value of the emulator's setting kafka.version: "3.9"."""
        return ".".join(self.version.split(".")[:2])

    @property
    def has_kraft(self) -> bool:
        """Whether it runs without ZooKeeper."""
        return tuple(map(int, self.line.split("."))) >= KRAFT_SINCE


NEWEST = Release("4.4", "4.4.0", "NEW")

COMPLETE = Release("4.3", "4.3.1", "NEW")
"""The newest release with all artifacts in Maven Central: 4.4.0 lacks Connect's connectors and the Streams examples."""

RELEASES = {
    release.name: release
    for release in (
        Release("2.4", "2.4.1", "OLD"),
        Release("2.8", "2.8.2", "OLD"),
        Release("3.9-old", "3.9.2", "OLD", {"group.coordinator.new.enable": "false"}),
        Release("3.9-new", "3.9.2", "NEW", {"group.coordinator.new.enable": "true"}),
        COMPLETE,
        NEWEST,
    )
}

GENERAL = Release("4.2", "4.2.2", "NEW", recorded="H-")
"""The first release in which share groups and streams groups are general. It has golden answers of these alone: others
are nearly those of 4.3, and the tests would play hundreds of scenarios once more."""

COMPARED = {
    release.name: release
    for release in sorted((*RELEASES.values(), GENERAL), key=lambda each: tuple(map(int, each.version.split("."))))
}
"""The releases whose brokers `make conformance` plays the scenarios to."""

UNRECORDED = Release("4.0", "4.0.2", "NEW")
"""A release that is emulated, but has no column in the comparison."""

BY_LINE = {release.line: release for release in sorted((*COMPARED.values(), UNRECORDED), key=lambda each: each.version)}
"""A release for each value of the emulator's setting kafka.version, oldest first; of 3.9 the new coordinator."""


BROKER = "kafka_2.13"
"""The artifact that contains the broker."""


def jars(version: str, artifact: str = BROKER) -> Path:
    """Return the folder with the jars of a release's artifact, fetching them if absent."""
    folder = CACHE / (version if artifact == BROKER else f"{artifact}-{version}")
    return fetched(folder, f"org.apache.kafka:{artifact}:{version}", LOG_WRITER)


def fetched(folder: Path, *coordinates: str) -> Path:
    """Return the folder with the artifacts `group:artifact:version` and all their dependencies."""
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            pom = Path(work, "pom.xml")
            dependencies = "\n".join(DEPENDENCY.format(*each.split(":")) for each in coordinates)
            pom.write_text(POM.format(dependencies=dependencies))
            goal = f"{DEPENDENCY_PLUGIN}:copy-dependencies"
            options = ("-DincludeScope=runtime", f"-DoutputDirectory={work}/jars")
            run("mvn", "--batch-mode", "--quiet", "--file", str(pom), goal, *options, timeout_s=FETCH_S)
            # atomically: an existing folder is complete, also for other processes
            try:
                Path(work, "jars").rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return folder


def run(*command: str, timeout_s: float) -> None:
    """Run a command to its end; AssertionError with its output if it fails."""
    with local_repository(command):
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}\n{ran.stderr}"
