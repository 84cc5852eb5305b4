"""Clients that are older than a release: librdkafka, from the wheels of confluent-kafka (KIP-896)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from brokers.kafka_releases import run
from clients.line_clients import BUILD, PROGRAMS

from koordinator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("pypi")

OLDEST, OLDER = ("1.8.2", "39"), ("1.5.0", "38")
"""Versions of librdkafka, with the Python of a wheel that contains it."""

PLATFORMS = ("manylinux1_x86_64", "manylinux2010_x86_64")

WAIT_S = 120


def library(version: str, python: str) -> Path:
    """Return the shared library, downloading its wheel if absent."""
    folder = BUILD / f"librdkafka-{version}"
    if not folder.is_dir():
        options = ("--no-deps", "--only-binary=:all:", "--python-version", python, "--dest", str(BUILD))
        platforms = (option for each in PLATFORMS for option in ("--platform", each))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download")
        run(*pip, *options, *platforms, f"confluent-kafka=={version}", timeout_s=WAIT_S)
        (wheel,) = BUILD.glob(f"confluent_kafka-{version}-*.whl")
        ZipFile(wheel).extractall(folder)
    (found,) = folder.rglob("librdkafka*.so*")
    return found


def consumed(library: Path, servers: str, *settings: str) -> str:
    """Return what a member of group g has read and committed."""
    command = (sys.executable, str(PROGRAMS / "old_librdkafka.py"), str(library), servers, *settings)
    variables = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, env=variables, check=False)
    return ran.stdout.strip()


@pytest.mark.parametrize(
    ("version", "release", "is_served"),
    [(OLDEST, "2.4", True), (OLDEST, "4.4", True), (OLDER, "2.4", True), (OLDER, "3.9", True), (OLDER, "4.0", False)],
)
def test_a_release_serves_the_clients_of_the_table(
    version: tuple[str, str],
    release: str,
    is_served: bool,  # noqa: FBT001 - a parameter
) -> None:
    with Emulator(topics={"t": 1}, kafka_version=release) as cluster:
        cluster.produce("t", ["v"])
        assert consumed(library(*version), cluster.bootstrap_servers) == ("v" if is_served else "")
        assert cluster.group("g").offsets == ({("t", 0): 1} if is_served else {})


def test_a_client_that_sends_a_removed_version_is_told_the_release_that_serves_it() -> None:
    settings = ("api.version.request=false", "broker.version.fallback=0.9.0.1")
    with Emulator(topics={"t": 1}) as cluster:
        consumed(library(*OLDER), cluster.bootstrap_servers, *settings)
        reasons = {line["reason"] for line in cluster.events() if line["kind"] == "conn" and line.get("reason")}
    assert "ListOffsets v0: not served by Kafka 4.4, 4.0 removed it (KIP-896): use --kafka-version 3.9" in reasons
