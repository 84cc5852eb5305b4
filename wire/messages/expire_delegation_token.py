"""ExpireDelegationToken (api key 40), versions 0-2, flexible from v2 (KIP-48)."""

from ..schema import binary, int16, int32, int64, message


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """A shorter life of a token."""

    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """The new end of its life."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
