"""compose/compose.yaml, in the variant for an engine without bridges: up, healthy, one consumer restarts."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess

import pytest
from brokers.docker_cli import ROOT, docker

pytestmark = pytest.mark.needs("docker")

DEMO_S = 400


def test_the_file_for_engines_with_bridges_is_valid() -> None:
    services = json.loads(docker("compose", "-f", "compose/compose.yaml", "config", "--format", "json"))["services"]
    assert {port["target"] for port in services["koordinator"]["ports"]} == {9092, 9080}
    inside = services["koordinator"]["environment"]["KOORDINATOR_ADVERTISED"].rpartition("INSIDE=")[2]
    clients = [service for name, service in services.items() if name != "koordinator"]
    assert {service["environment"]["BOOTSTRAP"] for service in clients} == {inside}
    assert {service["depends_on"]["koordinator"]["condition"] for service in clients} == {"service_healthy"}


def test_the_demo_comes_up_healthy_and_a_restart_rebalances_nothing() -> None:
    with socket.socket() as kafka, socket.socket() as control:
        for each in (kafka, control):
            each.bind(("127.0.0.1", 0))
        ports = {"PORT": str(kafka.getsockname()[1]), "CONTROL_PORT": str(control.getsockname()[1])}
    files = "compose.yaml:compose.host.yaml"
    environment = {**os.environ, **ports, "COMPOSE_FILE": files, "COMPOSE_PROJECT_NAME": f"koordinator-{os.getpid()}"}
    command = [str(ROOT / "compose" / "demo.sh")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEMO_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("consumer-1   rdkafka") == done.stdout.count("consumer-2   rdkafka") == 2
    assert re.search(r"== generation (\d+) before, \1 after", done.stdout)
