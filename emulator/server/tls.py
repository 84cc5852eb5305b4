"""Connections with TLS: Python's `ssl` between the bytes of the socket and those of the broker. Nothing here waits."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from koordinator.wire.values import mutable

from ..broker.authentication.protocols import with_article
from .streams import READ_BYTES, SocketConnection

if TYPE_CHECKING:
    import socket
    from pathlib import Path

NOT_TLS = {"HTTP_REQUEST", "WRONG_VERSION_NUMBER", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"}
"""OpenSSL's reasons for bytes that are no TLS."""

NOT_TRUSTED = {
    "TLSV1_ALERT_UNKNOWN_CA",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "TLSV1_BAD_CERTIFICATE_STATUS_RESPONSE",
}
"""OpenSSL's reasons when a client refuses the certificate."""

NO_CERTIFICATE = {"PEER_DID_NOT_RETURN_A_CERTIFICATE"}

REMEDIES = {
    **dict.fromkeys(NOT_TLS, "a request without TLS: set security.protocol={protocol} in the client"),
    **dict.fromkeys(
        NOT_TRUSTED,
        "the client does not trust the certificate: give it {ca_file} (ssl.ca.location, ssl.truststore.location,"
        " ssl_cafile), and connect to a name or address that the certificate has",
    ),
    **dict.fromkeys(NO_CERTIFICATE, "the client has no certificate, and ssl.client.auth is required"),
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not signed by {ca_file}",
}
"""Remedies, by OpenSSL's reason for the end of a handshake."""


@mutable
class TlsListener:
    """The settings of a listener with TLS: its security protocol, and the authority that clients have to trust.

    `context` is that of the next connections: a certificate may be replaced.
    """

    context: ssl.SSLContext
    protocol: str
    ca_file: Path

    def explain(self, failed: TlsFailed) -> str:
        """Return why a connection has failed, with the remedy if there is one."""
        remedy = REMEDIES.get(failed.reason)
        text = failed.strerror if remedy is None else remedy.format(protocol=self.protocol, ca_file=self.ca_file)
        return f"at {with_article(self.protocol)} port: {text}"


class TlsFailed(OSError):
    """A handshake or record that ends the connection; the reason is that of OpenSSL."""

    def __init__(self, error: ssl.SSLError) -> None:
        reason = error.reason or "the handshake was not completed"
        super().__init__(error.errno, f"TLS: {reason.replace('_', ' ').lower()}")
        self.reason = reason


class TlsConnection(SocketConnection):
    """A connection whose bytes are encrypted. The handshake is part of its first turns."""

    __slots__ = ("_incoming", "_is_established", "_outgoing", "_tls", "certificate", "client_host", "listener")

    def __init__(self, number: int, client: socket.socket, listener: TlsListener, client_host: str) -> None:
        super().__init__(number, client)
        self.listener, self.client_host = listener, client_host
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = listener.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_established = False
        self.certificate: dict[str, Any] | None = None
        """The verified certificate of the client, once after the handshake."""

    def put(self, data: bytes, *, more: bool) -> None:
        """Encrypt bytes, and send them."""
        with suppress(ssl.SSLError):
            view = memoryview(data)
            while view:
                view = view[self._tls.write(view) :]
        super().put(self._outgoing.read(), more=more)

    def read(self) -> bytes | None:
        """Return the next decrypted bytes, b"" at the end of the stream, None if there are none yet. Raises OSError."""
        encrypted = super().read()
        if not encrypted:
            return encrypted
        self._incoming.write(encrypted)
        data, has_ended = bytearray(), False
        try:
            if not self._is_established:
                self._tls.do_handshake()
                self._is_established = True
                self.certificate = self._tls.getpeercert() or None
            while not has_ended:
                piece = self._tls.read(READ_BYTES)
                data += piece
                has_ended = not piece
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            has_ended = True
        except ssl.SSLError as error:
            # the client is told, too
            self._send_outgoing()
            raise TlsFailed(error) from error
        self._send_outgoing()
        if has_ended:
            # the client has closed TLS, and perhaps not the socket
            self.closing = ""
        return bytes(data) or None

    def close(self) -> None:
        """Tell the client that TLS ends, and end the connection."""
        if self._is_established and not self._outbox:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._send_outgoing()
        super().close()

    def _send_outgoing(self) -> None:
        if self._outgoing.pending:
            super().put(self._outgoing.read(), more=False)
