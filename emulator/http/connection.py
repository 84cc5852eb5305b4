"""A client's connection to the control port, with limits on a client that does not read or sends slowly.

Hypercorn shields its writes from cancellation and does not limit them, so that a client that reads nothing would keep
its connection, and the server from stopping. This stream has the limits below Hypercorn, which takes it for Trio's.
"""

from __future__ import annotations

import socket
import struct
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import trio

from .problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Scope

HEAD_S = 5
"""The limit for the line and the headers of a request, and for the next request of a connection, in seconds."""

UNREAD_S = 30.0
"""How long a client may take nothing of a response, in seconds."""

SENT_BYTES = 64 * 1024
"""The most bytes of a response that are sent under one such limit."""

UNSENT_BYTES = 16 * 1024
"""A socket is writable while the system holds fewer unsent bytes; Trio's choice, too."""

UNLIMITED = 2**31 - 1

CONNECTION = "koordinator.connection"
"""The key of a request's connection in its ASGI state."""

ABORTED = "the connection was aborted"

LATE_HEAD = f"the request line and the headers did not arrive within {HEAD_S} s"


class HttpConnection:
    """A stream of bytes, as Hypercorn's TCPServer uses one of Trio."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._transport = trio.SocketStream(trio.socket.from_stdlib_socket(client))
        self._stream: trio.abc.Stream = self._transport
        self.socket = self._transport.socket
        """The socket, whose addresses Hypercorn reads."""
        self._sending: trio.CancelScope | None = None
        self._is_aborted = self._has_incomplete_head = False
        self._is_in_request = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return the next bytes, b"" at the end."""
        data = await self._stream.receive_some(max_bytes)
        self._has_incomplete_head = bool(data) and not self._is_in_request
        return data

    @contextmanager
    def request(self) -> Iterator[None]:
        """Return the context of a request, from its headers to the end of its response."""
        self._is_in_request, self._has_incomplete_head = True, False
        try:
            yield
        finally:
            self._is_in_request = False

    async def wait_until_read(self) -> None:
        """Return once the client has read nearly everything that it was sent."""
        self._limit_unsent(UNSENT_BYTES)
        try:
            await trio.lowlevel.wait_writable(self.socket)
        finally:
            # so that the last words of an unread stream are sent, too
            self._limit_unsent(UNLIMITED)

    def _limit_unsent(self, size: int) -> None:
        if hasattr(socket, "TCP_NOTSENT_LOWAT") and self._client.fileno() != -1:
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, size)

    async def send_all(self, data: bytes) -> None:
        """Send bytes. Raises BrokenResourceError if the client takes none of them for `UNREAD_S`, or after `abort`."""
        if self._is_aborted:
            raise trio.BrokenResourceError(ABORTED)
        self._has_incomplete_head = False
        with trio.CancelScope() as self._sending:
            for start in range(0, len(data), SENT_BYTES):
                self._sending.deadline = trio.current_time() + UNREAD_S
                await self._stream.send_all(memoryview(data)[start : start + SENT_BYTES])
        if self._sending.cancelled_caught:
            self.abort()
            raise trio.BrokenResourceError(ABORTED)

    async def send_eof(self) -> None:
        """Send the end of the stream."""
        await self._transport.send_eof()

    async def aclose(self) -> None:
        """Close the connection; a client whose headers are incomplete is sent the reason."""
        if self._has_incomplete_head:
            self._has_incomplete_head = False
            await self._send_last(complete_response(HTTPStatus.REQUEST_TIMEOUT, LATE_HEAD))
        await self._stream.aclose()

    async def _send_last(self, response: bytes) -> None:
        """Send the end of the stream without waiting for the client."""
        with suppress(OSError):
            self._client.send(response)

    def abort(self) -> None:
        """Reset the connection at once, also while Hypercorn sends, and discard what the client has not read."""
        self._is_aborted = True
        if self._sending is not None:
            self._sending.cancel()
        with suppress(OSError):
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def connection_of(scope: Scope) -> HttpConnection:
    """Return the connection of a request."""
    return cast("HttpConnection", scope["state"][CONNECTION])


def complete_response(status: HTTPStatus, detail: str) -> bytes:
    """Return the bytes of a response with a problem, after which the connection ends."""
    response = Problem(status, detail).response()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"Content-Type: {MEDIA_TYPE}\r\nContent-Length: {len(response.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + bytes(response.body)
