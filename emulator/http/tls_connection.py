"""A client's connection to a control port with TLS. Hypercorn awaits its handshake, and takes it for Trio's stream."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

import trio

from ..server.tls import NOT_TRUSTED, TlsFailed
from .connection import ABORTED, HttpConnection, complete_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..server.tls import TlsListener


HANDSHAKE = b"\x16"
"""The first byte of a client that speaks TLS (RFC 8446, section 5.1)."""

PLAIN_BYTES = 64 * 1024
"""The most bytes of a request without TLS that are read before its response."""

LAST_S = 0.5
"""How long a client may take to read why its connection ends, in seconds."""

NOT_SECURE = "the control port speaks TLS: use https://, and trust the file that the server's first line names"


class TlsHttpConnection(HttpConnection):
    """A connection whose bytes are encrypted."""

    def __init__(self, client: socket.socket, tls: TlsListener, log: Callable[[str], None]) -> None:
        super().__init__(client)
        self._tls, self._log = tls, log
        self._secure = trio.SSLStream(self._transport, tls.context, server_side=True, https_compatible=True)
        self._stream = self._secure
        self._is_secure = False

    @property
    def transport_stream(self) -> TlsHttpConnection:
        """The stream whose socket has the addresses; Hypercorn reads it."""
        return self

    def selected_alpn_protocol(self) -> str:
        """Return the protocol within TLS."""
        return "http/1.1"

    async def do_handshake(self) -> None:
        """Complete the handshake. A client without TLS gets a response that says so. Raises BrokenResourceError."""
        try:
            await self._refuse_plaintext()
            await self._secure.do_handshake()
            self._is_secure = True
        except OSError as error:
            raise trio.BrokenResourceError(ABORTED) from error
        except trio.BrokenResourceError as error:
            if isinstance(error.__cause__, ssl.SSLError):
                self._log(f"control port: {self._explain(TlsFailed(error.__cause__))}")
            raise
        finally:
            if not self._is_secure:
                await trio.aclose_forcefully(self._transport)

    async def _refuse_plaintext(self) -> None:
        first = await self.socket.recv(1, socket.MSG_PEEK)
        if first == HANDSHAKE:
            return
        if first:
            # what is left unread would reset the connection before the response is read
            await self.socket.recv(PLAIN_BYTES)
            await self._transport.send_all(complete_response(HTTPStatus.BAD_REQUEST, NOT_SECURE))
        raise trio.BrokenResourceError(NOT_SECURE)

    async def send_eof(self) -> None:
        """Do nothing: `aclose` ends both directions of TLS."""

    async def _send_last(self, response: bytes) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(LAST_S):
            await self._secure.send_all(response)

    def _explain(self, failed: TlsFailed) -> str:
        if failed.reason not in NOT_TRUSTED:
            return str(failed.strerror)
        return (
            f"a client does not trust the certificate: give it {self._tls.ca_file} (curl --cacert), and connect to a"
            " name or address that the certificate has"
        )
