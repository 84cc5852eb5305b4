"""A client's socket, and what the server still has to send to it.

One task reads from a stream, and sends. It does not read on while the client has not taken what was sent to it, nor,
beyond a little, while a request of its is in hand. Answers that somebody else brings about interrupt it there.
"""

from __future__ import annotations

import socket
from typing import Protocol

import trio

READ_BYTES = 64 * 1024
"""The most bytes taken from a socket at once."""


class ByteStream(Protocol):
    """What the server wants of a stream. Failures of the network are OSErrors, or what Trio makes of them."""

    def send_now(self, data: bytes) -> bytes:
        """Send what the network takes at once, and return the rest; a failure shows when that is sent."""

    async def send_all(self, data: bytes) -> None:
        """Send these bytes; returns when the network has taken them."""

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        """Wait for bytes; none at the end of the stream. Other tasks have their turn meanwhile."""

    async def aclose(self) -> None:
        """Close it."""


class ClientStream:
    """A client's socket, with one turn of the scheduler for a request and its answer; Trio's stream takes two.

    What the network takes at once is sent without one. And it waits for bytes before it reads them, not after a
    read that found none.
    """

    __slots__ = ("_socket",)

    def __init__(self, stream: trio.SocketStream) -> None:
        """Take the socket out of Trio's stream, which is closed from then on."""
        ours = stream.socket
        # all is said, because asking the system for it fails on some once the client has reset the connection
        self._socket = socket.socket(ours.family, ours.type, ours.proto, fileno=ours.detach())
        self._socket.settimeout(0)

    def send_now(self, data: bytes) -> bytes:
        """Send what the network takes at once, and return the rest; a failure shows when that is sent."""
        try:
            return data[self._socket.send(data) :]
        except OSError:
            return data

    async def send_all(self, data: bytes) -> None:
        """Send these bytes; returns when the network has taken them."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self, max_bytes: int) -> bytes:
        """Wait for bytes; none at the end of the stream."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(max_bytes)
            except BlockingIOError:
                # a false alarm, as systems may give it
                continue

    async def aclose(self) -> None:
        """Close it."""
        self._socket.close()
        await trio.lowlevel.checkpoint()


class SocketConnection:
    """One client: its stream, what is still to be sent to it, and how to interrupt the task that serves it."""

    __slots__ = ("_naps", "_scope", "_stream", "_wants_all", "closing", "outbox")

    def __init__(self, stream: ByteStream) -> None:
        self.closing: str | None = None
        """Why the broker wants it closed, once what is in the outbox has left."""
        self._stream = stream
        self.outbox: list[bytes] = []
        """What is still to be sent."""
        self._scope = trio.CancelScope()
        self._naps = self._wants_all = False

    def put(self, data: bytes, *, more: bool) -> None:
        """Send this, soon and in order. `more`: something is to be done when it has left.

        What the network takes at once is sent here: to let the task do it, or even wake it for that, costs more. But
        a task that is sending has to send this, too, after it; and one that does not read has to be woken to do so.
        """
        if not self._wants_all and not self.outbox and not more:
            data = self._stream.send_now(data)
            if not data:
                return
        self.outbox.append(data)
        self._wake()

    def close(self, reason: str) -> None:
        """Close, after what was put."""
        self.closing = reason
        self._wake()

    def _wake(self) -> None:
        if self._naps:
            self._scope.cancel()

    def interruptible(self) -> trio.CancelScope:
        """A new scope to call `read` in."""
        self._scope = trio.CancelScope()
        return self._scope

    async def flush(self) -> None:
        """Send everything there is, in as few pieces as possible, until the network has taken it."""
        while self.outbox:
            data = self.outbox[0] if len(self.outbox) == 1 else b"".join(self.outbox)
            self.outbox.clear()
            self._wants_all = True
            await self._stream.send_all(data)
            self._wants_all = False

    async def read(self, *, muted: bool) -> bytes:
        """The next bytes, b"" at their end. The scope is cancelled if there is something to send or to close instead.

        A muted connection is not read from: it waits for that something.
        """
        self._naps, self._wants_all = True, muted
        try:
            if muted:
                await trio.sleep_forever()
            return bytes(await self._stream.receive_some(READ_BYTES))
        finally:
            self._naps = self._wants_all = False
