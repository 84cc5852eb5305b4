"""Clients that do not read, or that send slowly: what they cost is bounded, and they get the reason."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from brokers.http_server import WAIT_S, Serving

from koordinator.emulator.http import connection, event_stream, guards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokers.http_server import Served
    from starlette.types import Send

CLUSTER = "/v1/clusters/default"
EVENTS = f"GET {CLUSTER}/trace?since=0 HTTP/1.1\r\nHost: {{}}\r\nAccept: text/event-stream\r\n\r\n"
LIMIT_S = 0.5
"""The limit of a slow client in these tests."""

EVENT_BYTES = 10_000


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return a server whose limit for clients that do not read is half a second."""
    monkeypatch.setattr(connection, "UNREAD_S", LIMIT_S)
    monkeypatch.setattr(event_stream, "UNREAD_S", LIMIT_S)
    with Serving(topics={"orders": 2}) as served:
        yield served


def place_of(served: Served) -> str:
    return served.url.removeprefix("http://")


def connect(served: Served, receive_bytes: int | None = None) -> socket.socket:
    host, _, port = place_of(served).rpartition(":")
    client = socket.socket()
    if receive_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(WAIT_S)
    client.connect((host, int(port)))
    return client


def everything_of(client: socket.socket) -> bytes:
    """Return what a client receives until the end of its connection."""
    received = bytearray()
    while data := client.recv(65536):
        received += data
    return bytes(received)


def data_of(response: bytes) -> Any:
    return json.loads(response.partition(b"\r\n\r\n")[2])


def many_events(http: httpx.Client, number: int) -> None:
    """Make events that are larger than the buffers of a socket that is not read."""
    for _ in range(number):
        http.put(f"{CLUSTER}/groups/{'x' * EVENT_BYTES}/clock", json={"mode": "manual"}).raise_for_status()


@pytest.mark.slow
def test_a_stream_that_is_not_read_ends_with_an_event_that_says_so(
    impatient: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, stream_response = threading.Event(), event_stream.EventStream.stream_response

    async def watched(stream: event_stream.EventStream, send: Send) -> None:
        try:
            await stream_response(stream, send)
        finally:
            ended.set()

    monkeypatch.setattr(event_stream.EventStream, "stream_response", watched)
    with httpx.Client(base_url=impatient.url, trust_env=False, timeout=WAIT_S) as http:
        many_events(http, 100)
        with connect(impatient, receive_bytes=4096) as unread:
            unread.sendall(EVENTS.format(place_of(impatient)).encode())
            assert ended.wait(WAIT_S), "the stream goes on although nothing reads it"
            assert http.get("/healthz").is_success
            unread.sendall(
                f"GET /healthz HTTP/1.1\r\nHost: {place_of(impatient)}\r\nConnection: close\r\n\r\n".encode()
            )
            received = everything_of(unread)
    stream, _, rest = received.partition(b"\r\n0\r\n\r\n")
    assert rest.endswith(b'{"status":"ok"}'), "the response was complete"
    assert len(stream) < 100 * EVENT_BYTES / 4
    last = b"".join(re.split(rb"\r\n[0-9a-f]+\r\n", stream)).decode().rstrip("\n").rpartition("\n\n")[2]
    assert last.startswith("event: closed\ndata: ")
    assert json.loads(last.partition("data: ")[2]) == event_stream.UNREAD


@pytest.mark.slow
def test_no_more_than_so_many_streams_are_open(impatient: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "STREAMS_MAX", 2)
    request = EVENTS.format(place_of(impatient)).encode()
    with connect(impatient) as first, connect(impatient) as second:
        for each in (first, second):
            each.sendall(request)
            assert b"200" in each.recv(65536)
        with httpx.Client(base_url=impatient.url, trust_env=False, timeout=WAIT_S) as http:
            refused = http.get(f"{CLUSTER}/trace", headers={"accept": "text/event-stream"})
    assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert refused.json()["detail"].startswith("2 event streams are open")


@pytest.mark.slow
def test_a_server_stops_while_a_client_reads_nothing() -> None:
    with Serving() as served, httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as http:
        many_events(http, 100)
        unread = connect(served, receive_bytes=4096)
        unread.sendall(f"GET {CLUSTER}/trace HTTP/1.1\r\nHost: {place_of(served)}\r\n\r\n".encode())
        # the response has begun
        unread.recv(1)
    unread.close()


@pytest.mark.slow
def test_a_response_that_is_not_read_ends_with_its_connection(impatient: Served) -> None:
    with httpx.Client(base_url=impatient.url, trust_env=False, timeout=WAIT_S) as http:
        many_events(http, 200)
    with connect(impatient, receive_bytes=4096) as unread:
        unread.sendall(f"GET {CLUSTER}/trace HTTP/1.1\r\nHost: {place_of(impatient)}\r\n\r\n".encode())
        poll = select.poll()
        # the server has reset it
        poll.register(unread, select.POLLERR)
        assert poll.poll(WAIT_S * 1000)


@pytest.mark.slow
def test_slow_headers_and_slow_bodies_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "BODY_S", LIMIT_S)
    with Serving() as served, connect(served) as slow_head, connect(served) as slow_body:
        head = f"POST {CLUSTER}/topics/orders/records HTTP/1.1\r\nHost: {place_of(served)}\r\n"
        slow_head.sendall(head.encode())
        slow_body.sendall(f'{head}Content-Length: 100\r\n\r\n{{"records":'.encode())
        late_body, late_head = everything_of(slow_body), everything_of(slow_head)
    for late, detail in (
        (late_body, "the body did not arrive within 0.5 s"),
        (late_head, "the request line and the headers did not arrive within 5 s"),
    ):
        assert late.startswith(b"HTTP/1.1 408 ")
        assert data_of(late)["detail"] == detail


@pytest.mark.slow
def test_all_bodies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = guards.Bodies()
    monkeypatch.setattr(guards, "BODIES_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(guards, "Bodies", lambda: bodies)
    records = f"{CLUSTER}/topics/orders/records"
    with Serving(topics={"orders": 2}) as served, connect(served) as first:
        head = f"POST {records} HTTP/1.1\r\nHost: {place_of(served)}\r\nContent-Length: 2000000\r\n\r\n"
        first.sendall(head.encode() + b" " * 700_000)
        end = time.monotonic() + WAIT_S
        while bodies.size < 700_000 - guards.BODY_BYTES_FREE:
            assert time.monotonic() < end, bodies.size
            time.sleep(0.01)
        with httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as http:
            # the connection goes on after a refusal
            for _ in range(2):
                refused = http.post(records, content=b'{"records": []}' + b" " * 600_000)
                assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
                assert refused.json()["detail"].startswith(
                    "the bodies of all requests together are larger than 1000000"
                )
                assert refused.headers["retry-after"] == "1"
            assert http.post(records, json={"records": ["small"]}).json() == 1
