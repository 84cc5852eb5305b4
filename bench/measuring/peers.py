"""Connections of the load process: non-blocking sockets, and frames prepared before the clock starts."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from koordinator.wire import frames
from koordinator.wire.apis import APIS
from koordinator.wire.codec import encode
from koordinator.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from koordinator.wire.schema import Message

LIMIT_S = 120.0
"""The limit of every wait."""

TOGETHER = 100
"""Connections opened before their responses arrive: the listener's queue never overflows."""

READ_BYTES = 1 << 20

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")


class Connection:
    """One client connection, with TLS if there is a context; `got` has received bytes that are not processed yet."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(address, timeout=LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket)
        self.socket.settimeout(0)
        self.fd = self.socket.fileno()
        self.got = b""

    def send(self, data: bytes | memoryview) -> None:
        """Send all bytes; only more than the socket's buffer has to wait."""
        sent = self.socket.send(data)
        if sent < len(data):
            self.socket.settimeout(LIMIT_S)
            self.socket.sendall(data[sent:])
            self.socket.settimeout(0)

    def receive(self) -> bytes:
        """Return received bytes; none if TLS has received something else. ConnectionError if the server has closed."""
        if isinstance(self.socket, ssl.SSLSocket):
            return self._decrypted(self.socket)
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the server has closed a connection")
        return data

    def _decrypted(self, secure: ssl.SSLSocket) -> bytes:
        """Return the bytes of all records that have arrived: what OpenSSL holds does not make a socket readable."""
        data = bytearray()
        with suppress(ssl.SSLWantReadError):
            while piece := secure.recv(READ_BYTES):
                data += piece
            raise ConnectionError("the server has closed a connection")
        return bytes(data)

    def frame(self) -> bytes | None:
        """Return the next whole frame of `got`, without its length."""
        if len(self.got) < INT32.size:
            return None
        end = INT32.size + INT32.unpack_from(self.got)[0]
        if len(self.got) < end:
            return None
        frame, self.got = self.got[INT32.size : end], self.got[end:]
        return frame


class Peers:
    """All connections of the process."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.by_fd: dict[int, Connection] = {}
        self.poll = select.epoll()

    def open(
        self, address: tuple[str, int], count: int, hello: bytes, tls: ssl.SSLContext | None = None
    ) -> list[Connection]:
        """Open connections. Each sends `hello` and receives one frame."""
        opened: list[Connection] = []
        for begin in range(0, count, TOGETHER):
            batch = [Connection(address, tls) for _ in range(begin, min(begin + TOGETHER, count))]
            for connection in batch:
                self.by_fd[connection.fd] = connection
                self.poll.register(connection.fd, select.EPOLLIN)
                connection.send(hello)
            self.answers(batch)
            opened += batch
        self.connections += opened
        return opened

    def answers(self, asked: Iterable[Connection], look: Callable[[Connection, bytes], None] | None = None) -> None:
        """Wait for one response on each connection, and pass it to `look`."""
        waiting = {connection.fd for connection in asked}
        until = time.monotonic() + LIMIT_S
        while waiting:
            for connection, frame in self.some_answers(len(waiting), until):
                waiting.remove(connection.fd)
                if look is not None:
                    look(connection, frame)

    def some_answers(self, waiting: int, until: float | None = None) -> Iterator[tuple[Connection, bytes]]:
        """Wait for bytes, and yield the responses that they complete. TimeoutError after `until`, or LIMIT_S."""
        ready = self.poll.poll(LIMIT_S if until is None else max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError(f"{waiting} connections have not been answered")
        for fd, _ in ready:
            connection = self.by_fd[fd]
            connection.got += connection.receive()
            frame = connection.frame()
            if frame is not None:
                yield connection, frame

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections:
            self.poll.unregister(connection.fd)
            connection.socket.close()
        self.connections.clear()
        self.by_fd.clear()


def request(message: Message, version: int, correlation_id: int = 1) -> bytes:
    """Return the whole frame of a request."""
    key = next(key for key, api in APIS.items() if api.request is type(message))
    return frames.frame(frames.request_header(key, version, correlation_id, "bench"), encode(message, version))


def answer(message: Message, version: int, correlation_id: int = 1) -> bytes:
    """Return the whole frame of a response."""
    key = next(key for key, api in APIS.items() if api.response is type(message))
    return frames.frame(frames.response_header(key, version, correlation_id), encode(message, version))


HELLO = request(ApiVersionsRequest(), 0)
"""The first request of every client."""
