"""A client that sends one request after the other, of any version, and bytes that are none."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, Self

from koordinator.wire.apis import APIS, REQUEST_KEYS
from koordinator.wire.codec import decode, encode
from koordinator.wire.frames import frame, read_response_header, request_header

if TYPE_CHECKING:
    import ssl

LIMIT_S = 20.0


class AskingClient:
    """A connection that sends requests and bytes."""

    def __init__(
        self, address: tuple[str, int], tls: ssl.SSLContext | None = None, client_id: str | None = "test"
    ) -> None:
        self.client_id = client_id
        plain = socket.create_connection(address, LIMIT_S)
        self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname=address[0])
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int) -> Any:
        """Send a request, and return its response; None if the connection closes instead."""
        key, data = REQUEST_KEYS[type(request)], self._frame(request, version)
        body = self.exchange(data)
        if body is None:
            return None
        _, begin = read_response_header(key, version, body)
        return decode(APIS[key].response, version, body, begin=begin)

    def tell(self, request: Any, version: int) -> None:
        """Send a request that has no response."""
        self._socket.sendall(self._frame(request, version))

    def _frame(self, request: Any, version: int) -> bytes:
        self._number += 1
        header = request_header(REQUEST_KEYS[type(request)], version, self._number, self.client_id)
        return frame(header, encode(request, version))

    def exchange(self, data: bytes) -> bytes | None:
        """Send bytes, and return the next frame; None if the connection closes instead."""
        try:
            self._socket.sendall(data)
            length = self._exactly(4)
            return None if length is None else self._exactly(struct.unpack(">i", length)[0])
        except ConnectionError:
            return None

    def is_closed(self) -> bool:
        """Return whether the broker closes the connection within a second, the delay of failures included."""
        self._socket.settimeout(1.0)
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(LIMIT_S)

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                return None
            data += piece
        return data
