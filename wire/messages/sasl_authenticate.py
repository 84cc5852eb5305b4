"""SaslAuthenticate (api key 36), versions 0-2, flexible from 2.

v1 session_lifetime_ms (KIP-368)
"""

from ..schema import binary, int16, int64, message, string


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """A message of a SASL exchange."""

    auth_bytes: bytes = binary()


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """The next message of the exchange, or an error."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+", ignorable=True)
