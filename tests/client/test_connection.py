"""Connections of the admin client: a peer that is silent is told from one that speaks another protocol."""

from __future__ import annotations

import os
import resource
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from koordinator.client import connection
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import InvalidResponse, TimedOut

FDS_OF_SELECT, FILES = 1_024, 2_048
"""The number of descriptors that `select` can watch, and more than that."""


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SILENCE_S", 0.05)


def test_a_server_of_http_that_waits_for_a_line_of_text_is_named() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    host, port = "127.0.0.1", server.server_port
    try:
        with pytest.raises(InvalidResponse) as raised:
            BrokerConnection(Address(host, port), Deadline(30), "1")
    finally:
        server.shutdown()
        server.server_close()
    assert str(raised.value) == f"127.0.0.1:{port}: answers in HTTP: this is no port for Kafka clients"


def test_a_server_of_http_is_named_by_a_process_with_many_files() -> None:
    low, high = resource.getrlimit(resource.RLIMIT_NOFILE)
    if high < FILES:
        pytest.skip(f"a process may have {high} files here")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(low, FILES), high))
    files = [os.dup(server.fileno()) for _ in range(FDS_OF_SELECT)]
    try:
        with pytest.raises(InvalidResponse):
            BrokerConnection(Address("127.0.0.1", server.server_port), Deadline(30), "1")
    finally:
        for each in files:
            os.close(each)
        server.shutdown()
        server.server_close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (low, high))


def test_a_silent_server_is_waited_for_until_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
        with pytest.raises(TimedOut) as raised:
            BrokerConnection(address, Deadline(0.3), "1")
    assert str(raised.value) == f"{address}: no response to ApiVersions v5 within 0.3 s"
