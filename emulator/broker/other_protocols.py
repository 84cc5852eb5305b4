"""Clients that speak another protocol to a Kafka port: TLS, SASL or HTTP. Each node logs the remedy once for each host.

They connect again and again, and their own messages seldom name the cause.
"""

from __future__ import annotations

TLS_HANDSHAKE = b"\x16\x03"
"""The start of a TLS handshake: the record type and the first byte of every version (RFC 8446, 5.1)."""

HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"PATC", b"OPTI", b"CONN")

REMEDY = "set security.protocol=PLAINTEXT in the client"

TLS = f"a TLS handshake, and no listener here has TLS: {REMEDY}"
HTTP = "an HTTP request at a port for Kafka clients; HTTP is served at --control-port"
SASL = f"SaslHandshake, and no listener here has SASL: {REMEDY}"


def other_protocol(start: bytes) -> str | None:
    """Return what the first four bytes of a connection say instead of the length of a request, or None."""
    if start.startswith(TLS_HANDSHAKE):
        return TLS
    return HTTP if start in HTTP_METHODS else None
