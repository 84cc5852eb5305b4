"""The clients of other languages start the image: their modules of Testcontainers, on an engine that maps ports."""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pytest
from brokers.docker_cli import ROOT, docker
from brokers.kafka_releases import run
from clients.languages import run_client

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs("docker"), pytest.mark.slow]

CLIENTS = ROOT / "clients"

HOME = ROOT / "build" / "languages" / "node-container"

NODE_PACKAGES = {"kafkajs": "2.2.4", "testcontainers": "11.9.0"}
"""Version 12 of testcontainers needs Node.js 22."""

PROBE_S = 30

HELPER = "alpine:3.17"
"""The image with which Testcontainers for Java asks an engine for its gateway."""

LIMIT_S = 600
"""The limit of a run, which fetches its dependencies once."""


@pytest.fixture
def mapping_image(image: str) -> str:
    """The image, on an engine that maps ports."""
    names = docker("network", "ls", "--format", "{{.Name}}").split()
    if "bridge" not in names:
        pytest.skip("this engine has no bridge network, so it maps no ports")
    container = docker("run", "--detach", "--rm", "--publish", "127.0.0.1::9080", image).strip()
    try:
        address = docker("port", container, "9080").split()[-1]
        if not answers(f"http://{address}/readyz"):
            pytest.skip(f"a mapped port of this engine does not answer: {address}")
    finally:
        docker("kill", container)
    return image


def answers(url: str) -> bool:
    """Return whether a URL answers within PROBE_S seconds."""
    ends = time.monotonic() + PROBE_S
    while time.monotonic() < ends:
        with suppress(httpx.HTTPError):
            return httpx.get(url, timeout=1).is_success
        time.sleep(0.2)
    return False


@pytest.mark.needs("go")
def test_go_starts_a_container(mapping_image: str, tmp_path: Path) -> None:
    shutil.copytree(CLIENTS / "go", tmp_path / "go", ignore=shutil.ignore_patterns("test-results"))
    folder = tmp_path / "go" / "container"
    ran = run_client(["go", "test", "-v", "."], folder, LIMIT_S, KOORDINATOR_IMAGE=mapping_image)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "--- PASS: TestAConsumerConnectsToTheMappedPorts" in ran.stdout
    command = ["go", "test", "-run", "TestFailing", "."]
    failed = run_client(command, folder, LIMIT_S, KOORDINATOR_IMAGE=mapping_image, KOORDINATOR_FAILING="1")
    assert failed.returncode == 1, failed.stderr
    assert "full trace: test-results/TestFailing/trace.html" in failed.stdout
    assert 'group "svc": WaitStable: not within 2s' in failed.stdout


@pytest.mark.needs("java")
def test_java_starts_a_container(mapping_image: str, tmp_path: Path) -> None:
    try:
        docker("pull", "--quiet", HELPER, timeout_s=LIMIT_S)
    except AssertionError as error:
        pytest.skip(f"Testcontainers for Java runs a container of {HELPER}, which cannot be had: {error}")
    shutil.copytree(CLIENTS / "java", tmp_path / "java", ignore=shutil.ignore_patterns("target", "test-results"))
    command = ["mvn", "--batch-mode", "--quiet", "test", "-Dtest=KoordinatorContainerTest"]
    failing = "-Dsurefire.failIfNoSpecifiedTests=false"
    ran = run_client([*command, failing], tmp_path / "java", LIMIT_S, KOORDINATOR_IMAGE=mapping_image)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (report,) = tmp_path.rglob("TEST-*KoordinatorContainerTest.xml")
    assert re.search(r'<testsuite [^>]*tests="3"[^>]*skipped="0"', report.read_text(encoding="utf-8"))


@pytest.mark.needs("node")
def test_node_starts_a_container(mapping_image: str) -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"private": True, "type": "module", "dependencies": NODE_PACKAGES})
    if not (HOME / "package.json").exists() or (HOME / "package.json").read_text(encoding="utf-8") != text:
        (HOME / "package.json").write_text(text, encoding="utf-8")
        options = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
        run("npm", "--prefix", str(HOME), "install", *options, timeout_s=LIMIT_S)
    shutil.rmtree(HOME / "node_modules" / "koordinator", ignore_errors=True)
    shutil.copytree(CLIENTS / "node", HOME / "node_modules" / "koordinator")
    test = shutil.copy(CLIENTS / "node" / "tests" / "container.test.js", HOME)
    ran = run_client(["node", "--test", str(test)], HOME, LIMIT_S, KOORDINATOR_IMAGE=mapping_image)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass 1$", ran.stdout, re.MULTILINE), ran.stdout
