"""Listeners with TLS: what is inside a connection is Kafka, and a broken handshake ends one connection."""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from koordinator import Cluster, Emulator
from koordinator.emulator.server.certificates import Certificates
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.frames import frame, request_header
from koordinator.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 10.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Emulator(security="ssl", topics={"t": 1}) as cluster:
        yield cluster


def dial(cluster: Cluster) -> socket.socket:
    host, port = cluster.bootstrap_servers.split(":")
    return socket.create_connection((host, int(port)), LIMIT_S)


def context(cluster: Cluster) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=cluster.ca_file)


def secured(cluster: Cluster, settings: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    return (settings or context(cluster)).wrap_socket(dial(cluster), server_hostname="127.0.0.1")


def api_versions(number: int = 1) -> bytes:
    return frame(request_header(ApiKey.API_VERSIONS, 0, number, "c"), encode(ApiVersionsRequest(), 0))


def answer(sock: socket.socket) -> bytes:
    """Return the next response, without its header."""
    (length,) = struct.unpack(">i", exactly(sock, 4))
    return exactly(sock, length)[4:]


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the connection was closed"
        data += piece
    return data


def is_closed(sock: socket.socket) -> bool:
    """Return whether the peer closes the connection, whatever it sends before."""
    try:
        while sock.recv(4_096):
            pass
    except (ConnectionError, ssl.SSLError):
        pass
    return True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_are_answered_inside_each_version_of_tls(cluster: Cluster, version: ssl.TLSVersion) -> None:
    settings = context(cluster)
    settings.minimum_version = settings.maximum_version = version
    with closing(secured(cluster, settings)) as sock:
        for number in range(3):
            sock.sendall(api_versions(number))
            assert decode(ApiVersionsResponse, 0, answer(sock)).error_code == 0


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_the_certificate_has_the_names_of_this_machine(cluster: Cluster, name: str) -> None:
    with closing(context(cluster).wrap_socket(dial(cluster), server_hostname=name)):
        pass


def test_the_certificate_has_the_advertised_names() -> None:
    with Emulator(security="ssl", advertised={"SSL": "kafka.example:9092"}) as cluster:
        (listening,) = {each.rsplit(":", 1)[1] for each in [cluster.nodes[1].address("SSL")]}
        assert listening == "9092"
        port = cluster._port.served.node_listeners._listening[1][1].sockets[0].socket.getsockname()[1]  # type: ignore[attr-defined]
        sock = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        with closing(context(cluster).wrap_socket(sock, server_hostname="kafka.example")) as secure:
            secure.sendall(api_versions())
            assert answer(secure)


def test_each_listener_advertises_its_own_port() -> None:
    with Emulator(security="ssl", listeners={"SASL_SSL": "127.0.0.1:0"}) as cluster:
        with closing(secured(cluster)) as sock:
            header = request_header(ApiKey.METADATA, 1, 1, "c")
            sock.sendall(frame(header, encode(MetadataRequest(topics=()), 1)))
            (broker,) = decode(MetadataResponse, 1, answer(sock)).brokers
        assert f"{broker.host}:{broker.port}" == cluster.bootstrap_servers
        assert (
            cluster.nodes[1].address("SASL_SSL") != cluster.bootstrap_servers != cluster.nodes[1].address("PLAINTEXT")
        )


def test_requests_in_one_record_and_a_request_in_many_are_answered(cluster: Cluster) -> None:
    with closing(secured(cluster)) as sock:
        sock.sendall(b"".join(api_versions(number) for number in range(50)))
        for _ in range(50):
            assert answer(sock)
        for byte in api_versions():
            sock.sendall(bytes([byte]))
        assert answer(sock)


@pytest.mark.parametrize(
    "data", [api_versions(), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x00" * 400]
)
def test_bytes_that_are_no_handshake_end_one_connection(cluster: Cluster, data: bytes) -> None:
    with closing(secured(cluster)) as neighbour, closing(dial(cluster)) as sock:
        sock.sendall(data)
        assert is_closed(sock)
        neighbour.sendall(api_versions())
        assert answer(neighbour)


def test_a_handshake_that_stops_holds_nobody_up(cluster: Cluster) -> None:
    hello = ssl.MemoryBIO()
    client = context(cluster).wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    with closing(dial(cluster)) as sock:
        sock.sendall(hello.read()[:20])
        with closing(secured(cluster)) as neighbour:
            neighbour.sendall(api_versions())
            assert answer(neighbour)


def test_a_client_that_closes_tls_and_not_its_socket_is_disconnected(cluster: Cluster) -> None:
    sock = secured(cluster)
    with closing(sock):
        sock.sendall(api_versions())
        assert answer(sock)
        # the server ends TLS, too
        with closing(sock.unwrap()) as plain:
            assert is_closed(plain)


def test_a_client_without_trust_is_told_in_the_log_where_the_certificate_is(caplog: pytest.LogCaptureFixture) -> None:
    with Emulator(security="ssl") as cluster:
        for _ in range(2):
            with pytest.raises(ssl.SSLCertVerificationError):
                secured(cluster, ssl.create_default_context())
        with closing(dial(cluster)) as sock:
            sock.sendall(api_versions())
            assert is_closed(sock)
        with closing(secured(cluster)) as sock:
            sock.sendall(api_versions())
            assert answer(sock)
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 2, told
        assert f"the client does not trust the certificate: give it {cluster.ca_file}" in told[0]
        assert "at an SSL port: a request without TLS: set security.protocol=SSL in the client" in told[1]


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_client_certificates_are_checked_as_ssl_client_auth_says(client_auth: str) -> None:
    with Emulator(security="ssl", config={"ssl.client.auth": client_auth}) as cluster:
        assert cluster.ca_file is not None
        own = context(cluster)
        own.load_cert_chain(cluster.ca_file.replace("ca.pem", "client.pem"))
        for settings, is_accepted in ((context(cluster), client_auth != "required"), (own, True)):
            with closing(secured(cluster, settings)) as sock:
                sock.sendall(api_versions())
                if is_accepted:
                    assert answer(sock)
                else:
                    assert is_closed(sock)


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    with Emulator(security="ssl", certificates=tmp_path / "other") as other:
        assert other.ca_file is not None
    with Emulator(security="ssl", config={"ssl.client.auth": "requested"}) as cluster:
        settings = context(cluster)
        settings.load_cert_chain(tmp_path / "other" / "client.pem")
        with closing(secured(cluster, settings)) as sock:
            sock.sendall(api_versions())
            assert is_closed(sock)


def test_a_directory_keeps_its_certificates(tmp_path: Path) -> None:
    with Emulator(security="ssl", certificates=tmp_path) as cluster:
        made = (tmp_path / "server.pem").read_bytes()
        trusting = context(cluster)
    assert {path.name for path in tmp_path.iterdir()} == {"ca.pem", "server.pem", "client.pem"}
    with Emulator(security="ssl", certificates=tmp_path) as cluster, closing(secured(cluster, trusting)) as sock:
        sock.sendall(api_versions())
        assert answer(sock)
    assert (tmp_path / "server.pem").read_bytes() == made
    assert (tmp_path / "server.pem").stat().st_mode & 0o077 == 0


def test_an_unusable_certificate_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text("no certificate")
    with (
        pytest.raises(ValueError, match=f"certificates of {tmp_path}: server.pem"),
        Emulator(security="ssl", certificates=tmp_path),
    ):
        pass


def test_a_client_cannot_make_the_server_negotiate_again(cluster: Cluster) -> None:
    assert cluster.ca_file is not None
    settings = Certificates(Path(cluster.ca_file).parent, ()).context("none")
    assert settings.options & ssl.OP_NO_RENEGOTIATION
    assert settings.minimum_version >= ssl.TLSVersion.TLSv1_2
