"""Clients that speak another protocol to a Kafka port: TLS, HTTP, SASL or no SASL. A host's first one logs the remedy.

They connect again and again, and their own messages seldom name the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.brokers import PLAINTEXT
from .authentication.protocols import SASL_PLAINTEXT, SASL_SSL, SSL, with_article

if TYPE_CHECKING:
    from .authentication.authenticator import NotAuthenticated

TLS_HANDSHAKE = b"\x16\x03"
"""The start of a TLS handshake: the record type and the first byte of every version (RFC 8446, 5.1)."""

HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"PATC", b"OPTI", b"CONN")

HTTP = "an HTTP request at a port for Kafka clients; HTTP is served at --control-port"


def tls_at(protocol: str) -> str:
    """Return the line for a TLS handshake at a listener without TLS."""
    remedy = _remedy(protocol, SASL_SSL if protocol == SASL_PLAINTEXT else SSL)
    return f"a TLS handshake at {with_article(protocol)} port: {remedy}"


def sasl_at(protocol: str) -> str:
    """Return the line for SaslHandshake at a listener without SASL."""
    remedy = _remedy(protocol, SASL_SSL if protocol == SSL else SASL_PLAINTEXT)
    return f"SaslHandshake at {with_article(protocol)} port: {remedy}"


def no_sasl_at(protocol: str, error: NotAuthenticated) -> str:
    """Return the line for a request without authentication at a listener with SASL."""
    return f"{error}: set security.protocol={protocol} in the client, with sasl.mechanism and a user"


def _remedy(protocol: str, wanted: str) -> str:
    return f"set security.protocol={protocol} in the client, or start with --listener {wanted}=HOST:PORT"


def other_protocol(start: bytes, protocol: str = PLAINTEXT) -> str | None:
    """Return what the first four bytes of a connection say instead of the length of a request, or None."""
    if start.startswith(TLS_HANDSHAKE):
        return tls_at(protocol)
    return HTTP if start in HTTP_METHODS else None
