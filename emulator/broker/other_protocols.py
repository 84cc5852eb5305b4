"""Clients that speak another protocol to a Kafka port: TLS, SASL or HTTP. Each node logs the remedy once for each host.

They connect again and again, and their own messages seldom name the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TLS_HANDSHAKE = b"\x16\x03"
"""The start of a TLS handshake: the record type and the first byte of every version (RFC 8446, 5.1)."""

HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"PATC", b"OPTI", b"CONN")

REMEDY = "set security.protocol=PLAINTEXT in the client"

TLS = f"a TLS handshake, and no listener here has TLS: {REMEDY}"
HTTP = "an HTTP request at a port for Kafka clients; HTTP is served at --control-port"
SASL = f"SaslHandshake, and no listener here has SASL: {REMEDY}"

HOSTS_MAX = 1_000
"""Number of hosts and protocols that are remembered."""


def other_protocol(start: bytes) -> str | None:
    """Return what the first four bytes of a connection say instead of the length of a request, or None."""
    if start.startswith(TLS_HANDSHAKE):
        return TLS
    return HTTP if start in HTTP_METHODS else None


class OtherProtocols:
    """Writes a line to `log` for the first connection of a host that speaks a protocol."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._known: dict[tuple[str, str], None] = {}

    def tell(self, client_host: str, reason: str, line: str) -> None:
        """Write a line, unless the host is known to do this."""
        if (client_host, reason) in self._known:
            return
        if len(self._known) == HOSTS_MAX:
            del self._known[next(iter(self._known))]
        self._known[client_host, reason] = None
        self._log(line)
