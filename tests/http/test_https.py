"""The control port with TLS: right, wrong and plaintext clients."""

from __future__ import annotations

import socket
import ssl
import struct
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme
from brokers.http_server import WAIT_S, Served, Serving

from koordinator import Remote
from koordinator.emulator.http import connection
from koordinator.emulator.server.certificates import Certificates
from koordinator.emulator.server.tls import TlsListener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "a-token-nobody-else-has"


@pytest.fixture(scope="module")
def tls() -> TlsListener:
    certificates = Certificates(None, ())
    return TlsListener(certificates.context("none"), "HTTPS", certificates.ca_file)


@pytest.fixture(scope="module")
def served(tls: TlsListener) -> Iterator[Served]:
    with Serving(tls=tls, token=SECRET, topics={"orders": 2}) as served:
        yield served


@pytest.fixture(scope="module")
def right(served: Served, tls: TlsListener) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {SECRET}"}
    trusting = ssl.create_default_context(cafile=tls.ca_file)
    with httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S, verify=trusting, headers=headers) as client:
        yield client


def connect(served: Served) -> socket.socket:
    address = served.url.removeprefix("https://").split(":")
    return socket.create_connection((address[0], int(address[1])), timeout=WAIT_S)


def everything_of(client: socket.socket) -> bytes:
    received = bytearray()
    while data := client.recv(65536):
        received += data
    return bytes(received)


def test_a_client_that_trusts_the_authority_controls_the_cluster(served: Served, tls: TlsListener) -> None:
    assert served.url.startswith("https://")
    with Remote(served.url, token=SECRET, ca_file=tls.ca_file) as server:
        assert server.cluster().create_topic("more", partitions=3).name == "more"
        assert server.clusters() == ["default"]


def test_a_client_with_another_authority_does_not_connect(served: Served, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    with (
        Remote(served.url, token=SECRET, ca_file=tmp_path / "other.pem") as server,
        pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        server.cluster()
    with Remote(served.url, token=SECRET) as server, pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        server.cluster()


def test_the_log_says_which_file_a_client_has_to_trust(
    served: Served, tls: TlsListener, right: httpx.Client, tmp_path: Path
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    with Remote(served.url, token=SECRET, ca_file=tmp_path / "other.pem") as server, pytest.raises(ConnectionError):
        server.cluster()
    # a response to a later request: the server has read the alert of the client before
    assert right.get("/healthz").is_success
    explained = f"control port: a client does not trust the certificate: give it {tls.ca_file} "
    assert [line for line in served.logged if line.startswith(explained)]


def test_a_plaintext_client_is_told_to_use_tls_and_learns_nothing_else(served: Served) -> None:
    with httpx.Client(trust_env=False, timeout=WAIT_S) as client:
        response = client.get(f"{served.url.replace('https', 'http')}/healthz")
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.json()["detail"].startswith("the control port speaks TLS: use https://")
    with (
        Remote(served.url.replace("https", "http"), token=SECRET) as server,
        pytest.raises(ValueError, match="the control port speaks TLS"),
    ):
        server.cluster()


def test_the_token_is_required_over_tls_too(served: Served, tls: TlsListener) -> None:
    with Remote(served.url, token="wrong", ca_file=tls.ca_file) as server, pytest.raises(PermissionError):
        server.cluster()


def test_a_file_that_is_no_authority_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(ValueError, match=f"ca_file .*{name}: must have the authority in PEM"):
            Remote("https://localhost:1", ca_file=tmp_path / name)


def test_an_event_stream_and_a_large_response_come_whole(right: httpx.Client) -> None:
    records = ["x" * 10_000] * 100
    path = "/v1/clusters/default/topics/orders/records"
    assert right.post(path, json={"records": records}).is_success
    assert len(right.get(path).json()) == len(records)
    headers = {"Accept": "text/event-stream"}
    with right.stream("GET", "/v1/clusters/default/trace", params={"since": 0}, headers=headers) as stream:
        assert next(stream.iter_lines())


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x16", b"\x16\x03\x01\xff\xff" + b"\0" * 100, b"\x16\x03\x01\x00\x05hello", b"\0" * 500],
    ids=["nothing", "one-byte", "no-hello", "short", "zeros"],
)
def test_a_broken_handshake_ends_its_connection_alone(served: Served, right: httpx.Client, sent: bytes) -> None:
    with connect(served) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        everything_of(client)
    with connect(served) as client:
        client.sendall(sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert right.get("/healthz").json() == {"status": "ok"}
    assert not [line for line in served.logged if "has failed" in line]


@pytest.mark.slow
def test_a_handshake_and_a_request_that_do_not_end_have_a_limit(
    tls: TlsListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koordinator.emulator.http.server.HEAD_S", 0.2)
    with Serving(tls=tls) as served:
        with connect(served) as silent:
            silent.sendall(b"\x16\x03\x01")
            assert everything_of(silent) == b""
        trusting = ssl.create_default_context(cafile=tls.ca_file)
        with connect(served) as plain, trusting.wrap_socket(plain, server_hostname="localhost") as slow:
            slow.sendall(b"GET /healthz HT")
            response = everything_of(slow)
    assert response.startswith(b"HTTP/1.1 408")
    assert connection.LATE_HEAD.encode() in response
