"""No secret is in trace, log, page, error, snapshot or `repr`: planted ones are looked for (KIP-48, KIP-554)."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from brokers.http_server import Serving
from builders.acl_requests import request
from builders.sasl_messages import bearer, plain
from clients.asking_client import AskingClient

from koordinator import Emulator, Remote
from koordinator.emulator.config.options import Options
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.http.routes import BELOW, ROUTES
from koordinator.emulator.pages.html import html_of
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from pathlib import Path

    from koordinator import Cluster

PASSWORD, SECRET, SALTED = "planted-password", "planted-secret-key", b"planted-salted-password"

USERS = {"alice": PASSWORD}

CONFIG: dict[str, object] = {
    "delegation.token.secret.key": SECRET,
    "sasl.oauthbearer.jwks.endpoint.url": "generated",
}

BROKER = 4
"""The resource type of a broker in DescribeConfigs."""


def client_of(cluster: Cluster, mechanism: str, data: bytes) -> AskingClient:
    host, port = cluster.bootstrap_servers.split(":")
    client = AskingClient((host, int(port)))
    client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    client.ask(SaslAuthenticateRequest(auth_bytes=data), 2)
    return client


def use_secrets(cluster: Cluster) -> list[bytes]:
    """Have clients use each secret, rightly and wrongly; return those that came about."""
    tokens = [cluster.token("olga"), cluster.token("olga", lifetime=-60)]
    for token in tokens:
        with client_of(cluster, "OAUTHBEARER", bearer(token)):
            pass
    with client_of(cluster, "PLAIN", plain("alice", PASSWORD + "x")):
        pass
    with client_of(cluster, "PLAIN", plain("alice", PASSWORD)) as alice:
        fields = {"max_lifetime_ms": -1, "renewers": ()}
        hmac = alice.ask(request(ApiKey.CREATE_DELEGATION_TOKEN, **fields), 3).hmac
        assert len(hmac) == 64
        alice.ask(request(ApiKey.RENEW_DELEGATION_TOKEN, hmac=hmac, renew_period_ms=-1), 2)
        alice.ask(request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 3)
        row = {"name": "alice", "mechanism": 1, "iterations": 4_096, "salt": b"s", "salted_password": SALTED}
        alice.ask(request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, upsertions=[row]), 0)
        resources = [{"resource_type": BROKER, "resource_name": "1", "configuration_keys": None}]
        described = alice.ask(request(ApiKey.DESCRIBE_CONFIGS, resources=resources, include_synonyms=True), 4)
        shown = {each.name: each.value for each in described.results[0].configs}
        assert SECRET not in shown.values()
        assert "delegation.token.secret.key" in shown
    signatures = [token.rpartition(".")[2].encode() for token in tokens]
    return [PASSWORD.encode(), SECRET.encode(), SALTED, base64.b64encode(SALTED), base64.b64encode(hmac), *signatures]


def test_no_planted_secret_is_in_trace_log_page_snapshot_or_repr(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "trace.jsonl"
    with (
        caplog.at_level(logging.DEBUG),
        Emulator(security="sasl_plaintext", users=USERS, config=CONFIG, trace=path, topics={"t": 1}) as cluster,
    ):
        secrets = use_secrets(cluster)
        settings, _ = Settings.of("fast", CONFIG)
        options: Any = Options(security="sasl_plaintext", users=USERS, config=CONFIG)
        shown = {
            "trace": json.dumps(cluster.events()),
            "page": html_of(cluster.events(), title="t"),
            "snapshot": json.dumps(cluster.snapshot()),
            "repr": repr((cluster, settings, options, cluster.nodes, cluster.groups())),
        }
    shown |= {"file": path.read_text(), "log": caplog.text}
    found = {(place, secret) for place, text in shown.items() for secret in secrets if secret.decode("latin-1") in text}
    assert found == set()
    assert "SaslAuthenticate" in shown["file"], "the requests are in the trace"
    assert "authentication failed" in shown["log"]


@pytest.mark.slow
def test_no_planted_secret_is_in_a_response_of_the_control() -> None:
    with (
        Serving(security="sasl_plaintext", users=USERS, config=CONFIG) as served,
        Remote(served.url) as server,
        httpx.Client(base_url=served.url, timeout=60) as http,
    ):
        secrets = [secret.decode("latin-1") for secret in use_secrets(server.cluster())]
        own = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]
        paths = ["/", "/metrics", "/v1/health", *(BELOW.format(cluster="default") + path for path in own)]
        texts = {path: http.get(path).text for path in paths}
    assert len(texts) > 10
    assert "SaslAuthenticate" in texts["/v1/clusters/default/trace"]
    assert [(path, secret) for path, text in texts.items() for secret in secrets if secret in text] == []
    assert [secret for secret in secrets if secret in "\n".join(served.logged)] == []


def test_no_secret_is_in_an_error() -> None:
    for config in ({"delegation.token.secret.kye": SECRET}, {**CONFIG, "sasl.enabled.mechanisms": "NOPE"}):
        with pytest.raises(ValueError, match=r"delegation\.token\.secret\.kye|NOPE") as refused:
            Emulator(security="sasl_plaintext", config=config).start()
        assert SECRET not in str(refused.value)
