"""Levers of authentication: tokens, sessions that end now, and another certificate."""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from builders.sasl_messages import bearer, plain
from clients.asking_client import AskingClient

from koordinator import Cluster, Emulator, Simulation
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT_S = 10.0

USERS = {"alice": "alice-secret", "bob": "bob-secret"}

SIGNED = {"sasl.oauthbearer.jwks.endpoint.url": "generated", "sasl.oauthbearer.expected.audience": "kafka"}


def address(cluster: Cluster) -> tuple[str, int]:
    host, port = cluster.bootstrap_servers.split(":")
    return host, int(port)


def logged_in(cluster: Cluster, mechanism: str, data: bytes) -> AskingClient:
    client = AskingClient(address(cluster))
    answer = attempted(client, mechanism, data)
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    return client


def attempted(client: AskingClient, mechanism: str, data: bytes) -> SaslAuthenticateResponse:
    client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    answer: SaslAuthenticateResponse = client.ask(SaslAuthenticateRequest(auth_bytes=data), 2)
    return answer


def is_served(client: AskingClient) -> bool:
    return client.ask(MetadataRequest(topics=()), 9) is not None


@pytest.mark.parametrize("config", [{}, SIGNED], ids=["unsecured", "signed"])
def test_a_token_logs_in_until_it_ends(config: dict[str, object]) -> None:
    with Emulator(security="sasl_plaintext", config=config) as cluster:
        with logged_in(cluster, "OAUTHBEARER", bearer(cluster.token("olga"))) as client:
            assert is_served(client)
        for refused in (cluster.token("olga", lifetime=-60), cluster.token("olga", claims={"exp": None})):
            with AskingClient(address(cluster)) as client:
                assert attempted(client, "OAUTHBEARER", bearer(refused)).auth_bytes == b'{"status":"invalid_token"}'
        with pytest.raises(ValueError, match="must be a name"):
            cluster.token("")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(security="sasl_plaintext", users=USERS) as cluster:
        yield cluster


def test_the_sessions_of_a_user_end_with_the_next_request(cluster: Cluster) -> None:
    alice = logged_in(cluster, "PLAIN", plain("alice", "alice-secret"))
    bob = logged_in(cluster, "PLAIN", plain("bob", "bob-secret"))
    with alice, bob:
        assert cluster.expire_authentication("alice") == 1
        assert cluster.expire_authentication("alice") == 0, "it has ended already"
        assert not is_served(alice)
        assert is_served(bob)
        assert cluster.expire_authentication() == 1
        assert not is_served(bob)
    verbs = [(event["verb"], event.get("body", {})) for event in cluster.events() if event["kind"] == "verb"]
    assert verbs == [("expire_authentication", {"user": "alice"})] * 2 + [("expire_authentication", {})]


def test_the_trace_names_the_principal_of_an_authenticated_client(cluster: Cluster) -> None:
    with logged_in(cluster, "PLAIN", plain("alice", "alice-secret")) as alice:
        assert is_served(alice)
    rows = [(event["kind"], event["api"], event.get("principal")) for event in cluster.events() if "api" in event]
    assert rows == [
        *((kind, api, None) for api in ("SaslHandshake", "SaslAuthenticate") for kind in ("request", "response")),
        *((kind, "Metadata", "User:alice") for kind in ("request", "response")),
    ]


def test_a_client_that_authenticates_again_in_time_goes_on(cluster: Cluster) -> None:
    with logged_in(cluster, "PLAIN", plain("alice", "alice-secret")) as alice:
        cluster.expire_authentication()
        assert alice.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        assert alice.ask(SaslAuthenticateRequest(auth_bytes=plain("alice", "alice-secret")), 2).error_code == 0
        assert is_served(alice)


def handshake(cluster: Cluster, ca_file: str) -> ssl.SSLSocket:
    sock = socket.create_connection(address(cluster), LIMIT_S)
    try:
        return ssl.create_default_context(cafile=ca_file).wrap_socket(sock, server_hostname="localhost")
    except BaseException:
        sock.close()
        raise


def test_another_certificate_is_for_new_connections() -> None:
    with Emulator(security="ssl") as cluster, Emulator(security="ssl") as neighbour:
        assert cluster.ca_file is not None
        before = handshake(cluster, cluster.ca_file)
        with closing(before):
            first = before.getpeercert(binary_form=True)
            cluster.rotate_certificate()
            with closing(handshake(cluster, cluster.ca_file)) as after:
                assert after.getpeercert(binary_form=True) != first
            cluster.rotate_certificate("expired")
            with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
                handshake(cluster, cluster.ca_file)
            cluster.rotate_certificate("untrusted")
            with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|self-signed"):
                handshake(cluster, cluster.ca_file)
            cluster.rotate_certificate("renewed")
            handshake(cluster, cluster.ca_file).close()
            # the connection with the first certificate is still served
            before.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            assert before.recv(4)
        with closing(handshake(neighbour, cluster.ca_file)) as other:
            assert other.getpeercert(binary_form=True) == first, "clusters share an authority, and rotate alone"
        with pytest.raises(ValueError, match="to='old': must be one of renewed, expired, untrusted"):
            cluster.rotate_certificate("old")  # type: ignore[arg-type]


def test_a_renewed_certificate_of_an_authority_of_the_users_own_is_read_again(tmp_path: Path) -> None:
    with Emulator(security="ssl", certificates=tmp_path):
        pass
    with Emulator(security="ssl", certificates=tmp_path) as cluster:
        (tmp_path / "server.pem").write_bytes((tmp_path / "client.pem").read_bytes())
        cluster.rotate_certificate()
        with pytest.raises(ssl.SSLCertVerificationError, match=r"Hostname mismatch|hostname"):
            handshake(cluster, str(tmp_path / "ca.pem"))
        with pytest.raises(ValueError, match=r"the key of the authority .* is not known here"):
            cluster.rotate_certificate("expired")


def test_without_tls_there_is_no_certificate_to_rotate(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="no listener has TLS"):
        cluster.rotate_certificate()
    with Simulation() as simulated, pytest.raises(ValueError, match="a simulation has no listener with TLS"):
        simulated.rotate_certificate()
