"""A client's socket and its queued output.

One task per connection reads and sends. It does not read on while the client has not taken its output, nor, beyond the
read-ahead, while a request is in flight. Output that results from other inputs interrupts the task.
"""

from __future__ import annotations

import socket

import trio

READ_BYTES = 64 * 1024
"""The most bytes of one read."""


class ClientStream:
    """A client's socket that needs one scheduler turn for a request and its response; Trio's stream needs two.

    It sends without a checkpoint where it can, and it waits before it reads, not after a read without data.
    """

    __slots__ = ("_socket",)

    def __init__(self, stream: trio.SocketStream) -> None:
        """Take over the socket of a Trio stream, which is closed from then on."""
        trio_socket = stream.socket
        # explicit parameters: some systems cannot report them after the client has reset the connection
        self._socket = socket.socket(
            trio_socket.family, trio_socket.type, trio_socket.proto, fileno=trio_socket.detach()
        )
        self._socket.settimeout(0)

    def send_now(self, data: bytes) -> bytes:
        """Send without waiting; return the unsent rest. A failure shows in `send_all`."""
        try:
            return data[self._socket.send(data) :]
        except OSError:
            return data

    async def send_all(self, data: bytes) -> None:
        """Return once the network has taken all bytes."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self, max_bytes: int) -> bytes:
        """Wait for bytes; return b"" at the end of the stream."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(max_bytes)
            except BlockingIOError:
                # a spurious wake-up
                continue

    async def aclose(self) -> None:
        """Close the socket."""
        self._socket.close()
        await trio.lowlevel.checkpoint()


class SocketConnection:
    """A client connection: its stream, its queued output, and the scope that interrupts its task."""

    __slots__ = ("_is_reading", "_queues_all", "_scope", "_stream", "closing", "outbox")

    def __init__(self, stream: ClientStream) -> None:
        self.closing: str | None = None
        """The reason to close the connection once the outbox is empty, if any."""
        self._stream = stream
        self.outbox: list[bytes] = []
        """Queued output."""
        self._scope = trio.CancelScope()
        self._is_reading = self._queues_all = False

    def put(self, data: bytes, *, more: bool) -> None:
        """Send bytes, soon and in order; `more`: the task has to act after them.

        Sends at once where the network takes the bytes, which is cheaper than waking the task. A task that is sending
        keeps the order, and a muted one must be woken.
        """
        if not self._queues_all and not self.outbox and not more:
            data = self._stream.send_now(data)
            if not data:
                return
        self.outbox.append(data)
        self._wake()

    def close(self, reason: str) -> None:
        """Close the connection after its queued output."""
        self.closing = reason
        self._wake()

    def _wake(self) -> None:
        if self._is_reading:
            self._scope.cancel()

    def interruptible(self) -> trio.CancelScope:
        """Return a new scope for calls of `read`."""
        self._scope = trio.CancelScope()
        return self._scope

    async def flush(self) -> None:
        """Send all queued output in as few pieces as possible."""
        while self.outbox:
            data = self.outbox[0] if len(self.outbox) == 1 else b"".join(self.outbox)
            self.outbox.clear()
            self._queues_all = True
            await self._stream.send_all(data)
            self._queues_all = False

    async def read(self, *, muted: bool) -> bytes:
        """Return the next bytes, b"" at the end of the stream; new output or a close cancels the scope.

        A muted connection only waits for that.
        """
        self._is_reading, self._queues_all = True, muted
        try:
            if muted:
                await trio.sleep_forever()
            return bytes(await self._stream.receive_some(READ_BYTES))
        finally:
            self._is_reading = self._queues_all = False
