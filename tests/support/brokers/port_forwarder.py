"""A mapped port without a container engine: connections to 127.0.0.2 are forwarded to a port of 127.0.0.1."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

HOST = "127.0.0.2"


class MappedPort:
    """Forwards connections to `target`, a port of 127.0.0.1 that may be set later; listens on `port`."""

    def __init__(self, target: int = 0) -> None:
        self.target = target
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        # closing alone does not wake the accepting thread
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(10)
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for each in self._sockets:
            each.close()

    @property
    def address(self) -> str:
        """Return `host:port`, for clients."""
        return f"{HOST}:{self.port}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                inside, _ = self._listener.accept()
                self._sockets.append(inside)
                outside = socket.create_connection(("127.0.0.1", self.target))
                self._sockets.append(outside)
                for source, sink in ((inside, outside), (outside, inside)):
                    thread = threading.Thread(target=self._pump, args=(source, sink), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
