"""Clients of Java, Go and Node.js log in by each mechanism, and by certificates; they join a group and commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from brokers.kafka_releases import NEWEST, jars
from clients.line_clients import PROGRAMS, TOOLS, command_of

from koordinator import Cluster, Emulator

LIMIT_S = 120

PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

SIGNED = {"sasl.oauthbearer.jwks.endpoint.url": "generated", "sasl.oauthbearer.expected.audience": "kafka"}

ACCESSES: dict[str, tuple[str, str, dict[str, object]]] = {
    **{mechanism: ("sasl_plaintext", mechanism, {}) for mechanism in PASSWORDS},
    "PLAIN with TLS": ("sasl_ssl", "PLAIN", {}),
    "OAUTHBEARER": ("sasl_plaintext", "OAUTHBEARER", {}),
    "OAUTHBEARER, signed": ("sasl_plaintext", "OAUTHBEARER", SIGNED),
    "mTLS": ("ssl", "", {"ssl.client.auth": "required"}),
}
"""The security protocol, the mechanism and the config of each way to log in."""

KINDS = [pytest.param(kind, marks=pytest.mark.needs(TOOLS[kind])) for kind in ("java", "franz-go", "kafkajs")]

USERS = {"alice": "alice-secret"}


def key_file(cluster: Cluster) -> str:
    """Return the key with its certificate that clients may use."""
    assert cluster.ca_file is not None
    return str(Path(cluster.ca_file).with_name("client.pem"))


def java(cluster: Cluster, mechanism: str) -> list[str]:
    config = cluster.client_config("java", group_id="g", **({"mechanism": mechanism} if mechanism else {}))
    if not mechanism:
        config |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": key_file(cluster)}
    file = config.get("sasl.oauthbearer.token.endpoint.url")
    options = [] if file is None else [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file}"]
    command = ["java", "-Xmx256m", *options, "-cp", f"{jars(NEWEST.version)}/*", str(PROGRAMS / "Secured.java")]
    return [*command, *(f"{name}={value}" for name, value in config.items())]


def other(kind: str, cluster: Cluster, mechanism: str) -> list[str]:
    access: dict[str, Any] = {"Servers": cluster.bootstrap_servers, "Mechanism": mechanism, "CA": cluster.ca_file or ""}
    if mechanism:
        access |= {"User": "alice", "Password": USERS["alice"], "Token": cluster.token("alice")}
    else:
        access["Key"] = key_file(cluster)
    return [*command_of(kind, "secured"), json.dumps(access)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("access", ACCESSES)
def test_a_client_logs_in_joins_a_group_and_commits(kind: str, access: str) -> None:
    protocol, mechanism, config = ACCESSES[access]
    with Emulator(security=protocol, users=USERS if mechanism else {}, config=config, topics={"t": 1}) as cluster:
        cluster.produce("t", "a", "b", "c")
        command = java(cluster, mechanism) if kind == "java" else other(kind, cluster, mechanism)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert ran.stdout.splitlines()[-1:] == ["a b c"], ran.stdout + ran.stderr
        assert cluster.group("g").offsets == {("t", 0): 3}
        (principal,) = {event.get("principal") for event in cluster.events() if event.get("api") == "JoinGroup"}
        assert principal == "User:alice" if mechanism else "CN=client" in str(principal)
