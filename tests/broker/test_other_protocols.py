"""A client that speaks TLS, SASL or HTTP to a port is told so: one line for each host, with the remedy."""

from __future__ import annotations

import ssl
from itertools import count

import pytest
from clients.frame_clients import Peer, Wire

from koordinator.emulator.broker import host_log
from koordinator.emulator.broker.other_protocols import HTTP, sasl_at, tls_at
from koordinator.wire.errors import Error
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest


def client_hello() -> bytes:
    """Return the first bytes of a real TLS client."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


NUMBERS = count(100)

TLS, SASL = tls_at("PLAINTEXT"), sasl_at("PLAINTEXT")


def sent(wire: Wire, host: str, data: bytes) -> Peer:
    """Send data on a new connection of a host."""
    peer = Peer(next(NUMBERS))
    wire.peers[peer.number] = peer
    wire.broker.connected(wire.now, peer.number, host)
    wire.send(peer, data)
    return peer


@pytest.mark.parametrize(
    ("data", "reason"),
    [(client_hello(), TLS), (b"GET / HTTP/1.1\r\n\r\n", HTTP), (b"POST /v1/clusters HTTP/1.1\r\n\r\n", HTTP)],
    ids=["tls", "get", "post"],
)
def test_each_host_is_told_once_and_each_connection_closes(data: bytes, reason: str) -> None:
    wire = Wire()
    for host in ("/10.0.0.1", "/10.0.0.1", "/10.0.0.2"):
        assert sent(wire, host, data).closed == reason
    assert [line.partition(" of ")[2] for line in wire.logged] == [
        f"'' ({host}) closed: {reason}" for host in ("/10.0.0.1", "/10.0.0.2")
    ]


def test_the_trace_has_the_reason_of_each_connection() -> None:
    wire = Wire()
    for _ in range(2):
        sent(wire, "/10.0.0.1", client_hello())
    assert [event["reason"] for event in wire.trace.events() if event.get("change") == "closed"] == [TLS, TLS]


def test_a_client_that_begins_with_sasl_is_answered_and_its_host_is_told_once() -> None:
    wire = Wire()
    for _ in range(2):
        answer = wire.ask(wire.connect(), SaslHandshakeRequest(mechanism="PLAIN"), 1, client_id="app")
        assert answer.error_code == Error.ILLEGAL_SASL_STATE
    assert wire.logged == [f"client 'app' (/127.0.0.1) sends {SASL}"]


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_host_without_sasl_at_a_port_with_sasl_is_told_once_with_the_remedy(protocol: str) -> None:
    wire = Wire()
    closed = []
    for host in ("/10.0.0.1", "/10.0.0.1", "/10.0.0.2"):
        peer = Peer(next(NUMBERS))
        wire.peers[peer.number] = peer
        wire.broker.connected(wire.now, peer.number, host, protocol)
        wire.send(peer, wire.request(peer, MetadataRequest(), 12))
        closed.append(peer.closed)
    reason = (
        "a request before the authentication, which begins with SaslHandshake (api key 3): set"
        f" security.protocol={protocol} in the client, with sasl.mechanism and a user"
    )
    assert closed == [reason] * 3
    assert [line.partition(" closed: ")[2] for line in wire.logged] == [reason] * 2


@pytest.mark.parametrize(("protocol", "wanted"), [("PLAINTEXT", "SSL"), ("SASL_PLAINTEXT", "SASL_SSL")])
def test_the_remedy_for_tls_names_the_protocol_of_the_port(protocol: str, wanted: str) -> None:
    wire = Wire()
    peer = Peer(next(NUMBERS))
    wire.peers[peer.number] = peer
    wire.broker.connected(wire.now, peer.number, "/10.0.0.1", protocol)
    wire.send(peer, client_hello())
    assert peer.closed == (
        f"a TLS handshake at a {protocol} port: set security.protocol={protocol} in the client, or start with"
        f" --listener {wanted}=HOST:PORT"
    )


def test_only_so_many_hosts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_log, "HOSTS_MAX", 2)
    wire = Wire()
    for host in ("/1", "/2", "/3", "/3", "/1"):
        sent(wire, host, client_hello())
    assert len(wire.logged) == 4, "the first host was forgotten"
