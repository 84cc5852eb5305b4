"""CreateDelegationToken (api key 38), versions 0-3, flexible from v2 (KIP-48).

v3 owner and requester (KIP-373)
"""

from ..schema import array, binary, entity, int16, int32, int64, message, string


@entity
class CreatableRenewers:
    """A principal that may renew the token."""

    principal_type: str = string()
    principal_name: str = string()


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    """A request for a token, of the requester or of another owner."""

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: tuple[CreatableRenewers, ...] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    throttle_time_ms: int = int32()
