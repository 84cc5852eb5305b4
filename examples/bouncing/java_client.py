"""The member with Java's client: its libraries, which Maven fetches once, and its command."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bouncing.clients import Membership

SOURCES = Path(__file__).parent / "java"
BUILD = Path(__file__).resolve().parents[2] / "build" / "java-member"

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
PREPARE_S = 180
"""Time limit of the fetch, and of the compilation."""

ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@cache
def class_path() -> str | None:
    """Return the class path of the member, compiled; None without a JDK (17 or newer) and Maven, or if they fail."""
    if shutil.which("javac") is None or shutil.which("mvn") is None:
        return None
    libraries = BUILD / "libraries"
    try:
        if not libraries.is_dir():
            fetched = BUILD / "fetched"
            _run("mvn", "--batch-mode", "--file", str(SOURCES / "pom.xml"), COPY, f"-DoutputDirectory={fetched}")
            fetched.rename(libraries)
        _run("javac", "--release", "17", "-cp", f"{libraries}/*", "-d", str(BUILD), str(SOURCES / "Member.java"))
    except (subprocess.SubprocessError, OSError):
        return None
    return f"{BUILD}:{libraries}/*"


def command(membership: Membership) -> list[str]:
    """Return the command of a member. Raises LookupError without Java."""
    path = class_path()
    if path is None:
        raise LookupError("no Java client: install a JDK (17 or newer) and Maven, or use the other clients")
    settings = membership.settings()
    if membership.protocol in ASSIGNORS:
        settings["partition.assignment.strategy"] = ASSIGNORS[membership.protocol]
    given = [f"{name}={value}" for name, value in settings.items()]
    return ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", path, "Member", membership.topic, *given]


def _run(*command: str) -> None:
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PREPARE_S, check=True)
