"""A client's socket and its queued output. Nothing here waits."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress

READ_BYTES = 64 * 1024
"""The most bytes of one read."""


class SocketConnection:
    """A client connection: its socket, its queued output, and its place among the turns.

    `watched`, `is_queued`, `is_ending` and `virtual_s` belong to `Turns`: the event that it is watched for, whether it
    waits for its turn, whether the client has closed its side, and the time that it has been served for, which is
    negative before its first turn.
    """

    __slots__ = (
        "_outbox",
        "_socket",
        "closing",
        "fd",
        "has_more",
        "is_ending",
        "is_held_back",
        "is_queued",
        "number",
        "virtual_s",
        "watched",
    )

    def __init__(self, number: int, client: socket.socket) -> None:
        self.number = number
        self.fd = client.fileno()
        self.closing: str | None = None
        """The reason to close the connection once its output is sent, if any."""
        self.is_held_back = False
        """Whether the broker waits for `flushed`."""
        self.has_more = False
        """Whether another read may return something at once: the last one was full, or the stream has an end."""
        self.is_queued = self.is_ending = False
        self.watched, self.virtual_s = 0, -1.0
        self._socket = client
        self._outbox: deque[bytes | memoryview] = deque()

    @property
    def has_to_write(self) -> bool:
        """Whether its next turn follows its output, not its input."""
        return bool(self._outbox) or self.is_held_back or self.closing is not None

    def put(self, data: bytes, *, more: bool) -> None:
        """Send bytes in order, at once where the network takes them; `more`: the broker waits for `flushed`.

        A failure shows in `flush`.
        """
        self.is_held_back |= more
        rest: bytes | memoryview = data
        if not self._outbox:
            with suppress(OSError):
                rest = self._send(data)
        if rest:
            self._outbox.append(rest)

    def flush(self) -> bool:
        """Send queued output; return whether nothing is left. Raises OSError if the client has gone."""
        while self._outbox:
            self._outbox[0] = self._send(self._outbox[0])
            if self._outbox[0]:
                return False
            self._outbox.popleft()
        return True

    def _send(self, data: bytes | memoryview) -> bytes | memoryview:
        """Send what the network takes; return the rest as a view."""
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            return data
        return memoryview(data)[sent:] if sent < len(data) else b""

    def read(self) -> bytes | None:
        """Return the next bytes, b"" at the end of the stream, None if there are none yet. Raises OSError."""
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return None
        self.has_more = len(data) == READ_BYTES or self.is_ending
        return data

    def close(self) -> None:
        """End the connection, and close the socket; a forked child may have it, too."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
