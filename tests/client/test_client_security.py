"""The client logs in by each protocol and mechanism, with the settings of Kafka's tools; its errors name the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.scripted_broker import Scripted

from koordinator import Cluster, Emulator
from koordinator.client.admin import Admin
from koordinator.client.connection import Address
from koordinator.client.errors import AuthenticationFailed, ClientError, SecuredListener, Unreachable
from koordinator.client.security import ConnectionSecurity, properties
from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT_S = 10.0

USERS = {"alice": 'a"l\\i;c,e=', "bob": "bob-secret"}

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module", params=["ssl", "sasl_plaintext", "sasl_ssl"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Emulator(security=request.param, users=USERS if request.param.startswith("sasl") else {}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def sasl_ssl() -> Iterator[Cluster]:
    with Emulator(security="sasl_ssl", users=USERS) as cluster:
        yield cluster


def brokers(cluster: Cluster, settings: dict[str, Any]) -> int:
    host, port = cluster.bootstrap_servers.split(":")
    security = ConnectionSecurity.of(settings)
    with Admin([Address(host, int(port))], LIMIT_S, "1", security=security) as admin:
        return len(admin.brokers())


def test_the_settings_of_a_java_client_are_enough(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    config = cluster.client_config("java")
    path.write_text("# a comment\n" + "".join(f"{name} = {value}\n" for name, value in config.items()))
    assert brokers(cluster, properties(path.read_text())) == 1


def test_the_settings_of_librdkafka_are_enough(cluster: Cluster) -> None:
    config = {name: str(value) for name, value in cluster.client_config("confluent-kafka").items()}
    assert brokers(cluster, config) == 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", USERS)
def test_each_mechanism_logs_in(sasl_ssl: Cluster, mechanism: str, user: str) -> None:
    config = sasl_ssl.client_config("java", user=user) | {"sasl.mechanism": mechanism}
    assert brokers(sasl_ssl, config) == 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_refused_with_the_text_of_the_broker(sasl_ssl: Cluster, mechanism: str) -> None:
    config = sasl_ssl.client_config("confluent-kafka") | {"sasl.password": "wrong", "sasl.mechanisms": mechanism}
    with pytest.raises(AuthenticationFailed, match=r"Authentication failed") as raised:
        brokers(sasl_ssl, config)
    assert "wrong" not in str(raised.value)


def challenged(final: bytes) -> Any:
    """Answer the first message of SCRAM with a challenge, and the second with `final`."""

    def answer(request: SaslAuthenticateRequest, _version: int) -> SaslAuthenticateResponse:
        message = request.auth_bytes.decode()
        if not message.startswith("n,,"):
            return SaslAuthenticateResponse(auth_bytes=final)
        nonce = message.partition(",r=")[2]
        return SaslAuthenticateResponse(auth_bytes=f"r={nonce}x,s=c2FsdA==,i=4096".encode())

    return answer


@pytest.mark.parametrize("final", [b"v=AAAA", b""])
def test_a_broker_that_cannot_prove_that_it_knows_the_password_is_no_broker(final: bytes) -> None:
    """RFC 5802: the client verifies the server's signature."""
    security = ConnectionSecurity("SASL_PLAINTEXT", "SCRAM-SHA-256", "alice", "secret")
    with Scripted() as broker:
        broker.answers(ApiKey.SASL_HANDSHAKE, SaslHandshakeResponse(mechanisms=("SCRAM-SHA-256",)))
        broker.answers(ApiKey.SASL_AUTHENTICATE, challenged(final))
        with (
            pytest.raises(AuthenticationFailed, match="the broker does not know the password of alice") as raised,
            Admin([Address(broker.host, broker.port)], LIMIT_S, "1", security=security) as admin,
        ):
            admin.brokers()
        assert "secret" not in str(raised.value)
        assert not broker.requests(ApiKey.METADATA)


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    with (
        Emulator(security="sasl_plaintext", config={"sasl.enabled.mechanisms": "SCRAM-SHA-512"}) as cluster,
        pytest.raises(AuthenticationFailed, match=r"sasl.mechanism=PLAIN: not enabled there; must be one of SCRAM-S"),
    ):
        brokers(cluster, cluster.client_config("java"))


@pytest.mark.parametrize(
    ("security", "protocol", "plain"),
    [("plaintext", "SASL_PLAINTEXT", "PLAINTEXT"), ("ssl", "SASL_SSL", "SSL")],
)
def test_sasl_at_a_port_without_sasl_is_refused_with_the_protocol_of_the_port(
    security: str, protocol: str, plain: str
) -> None:
    with Emulator(security=security) as cluster:
        user = {"security.protocol": protocol, "sasl.username": "alice", "sasl.password": "alice-secret"}
        with pytest.raises(AuthenticationFailed, match=f"the port has no SASL: set security.protocol={plain}, or"):
            brokers(cluster, {**cluster.client_config("confluent-kafka"), **user})


def test_tls_at_a_port_without_tls_is_refused_with_the_protocol_of_the_port() -> None:
    with (
        Emulator() as cluster,
        pytest.raises(Unreachable, match=r"TLS handshake failed: .*; if the port has no TLS, set .*protocol=PLAINTEXT"),
    ):
        brokers(cluster, {"security.protocol": "SSL"})


def test_a_certificate_that_is_not_trusted_is_refused_with_the_setting_that_trusts_it(sasl_ssl: Cluster) -> None:
    config = sasl_ssl.client_config("confluent-kafka")
    del config["ssl.ca.location"]
    with pytest.raises(Unreachable, match=r"the TLS handshake failed: .*certificate.*; name the .* by ssl.ca.location"):
        brokers(sasl_ssl, config)


@pytest.mark.parametrize("setting", ["ssl.ca.location", "ssl.truststore.location", "ssl.keystore.location"])
def test_a_file_of_tls_that_cannot_be_used_is_named_with_its_setting(setting: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    settings = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    for path, problem in (("nope.pem", "No such file or directory"), (str(empty), "OpenSSL cannot use it as PEM")):
        with pytest.raises(ValueError, match=f"{setting}={path}: {problem}"):
            ConnectionSecurity.of({**settings, setting: path})


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("security.protocl", "security.protocol"),
        ("security-protocol", "security.protocol"),
        ("ssl.ca.loction", "ssl.ca.location"),
        ("sasl_mechanism", "sasl.mechanism"),
        ("sasl.user", "sasl.username"),
    ],
)
def test_a_misspelled_security_setting_is_refused_with_the_nearest_name(name: str, similar: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: no security setting of Kafka's clients; did you mean {similar}"):
        ConnectionSecurity.of({name: "x"})


def test_other_settings_of_clients_have_no_effect() -> None:
    others = ("client.id", "request.timeout.ms", "sasl.oauthbearer.token.endpoint.url", "ssl.cipher.suites")
    assert ConnectionSecurity.of(dict.fromkeys(others, "x")) == ConnectionSecurity()


def test_a_client_certificate_is_sent() -> None:
    with Emulator(security="ssl", config={"ssl.client.auth": "required"}) as cluster:
        assert cluster.ca_file is not None
        config = cluster.client_config("java")
        with pytest.raises(ClientError):
            brokers(cluster, config)
        key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": cluster.ca_file.replace("ca.pem", "client.pem")}
        assert brokers(cluster, config | key) == 1


def test_without_settings_the_error_says_how_to_give_them(cluster: Cluster) -> None:
    with pytest.raises(SecuredListener, match="give its settings by --command-config"):
        brokers(cluster, {})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"security.protocol": "TLS"}, "security.protocol=TLS: must be one of PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI: must be one of PLAIN"),
        ({"security.protocol": "SASL_SSL"}, "sasl.jaas.config: must have a username"),
        ({"ssl.truststore.location": "x.jks"}, "ssl.truststore.type=JKS: only PEM is read"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ConnectionSecurity.of(settings)


def test_properties_go_on_after_a_backslash() -> None:
    text = f"sasl.jaas.config={PLAIN} required \\\n   username=\"a\" \\\n   password='x';\n! no\n\nclient.id=c\n"
    found = properties(text)
    assert found["sasl.jaas.config"] == f"{PLAIN} required username=\"a\" password='x';"
    assert found["client.id"] == "c"
