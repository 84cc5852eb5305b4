"""RenewDelegationToken (api key 39), versions 0-2, flexible from v2 (KIP-48)."""

from ..schema import binary, int16, int32, int64, message


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest:
    """A longer life of a token."""

    hmac: bytes = binary()
    renew_period_ms: int = int64()


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse:
    """The new end of its life."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
