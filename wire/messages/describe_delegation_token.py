"""DescribeDelegationToken (api key 41), versions 0-3, flexible from v2 (KIP-48).

v3 requester (KIP-373)
"""

from ..schema import array, binary, entity, int16, int32, int64, message, string


@entity
class DescribeDelegationTokenOwner:
    """An owner of tokens."""

    principal_type: str = string()
    principal_name: str = string()


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """The owners whose tokens are described; null for all."""

    owners: tuple[DescribeDelegationTokenOwner, ...] | None = array(DescribeDelegationTokenOwner, nullable="0+")


@entity
class DescribedDelegationTokenRenewer:
    """A principal that may renew the token."""

    principal_type: str = string()
    principal_name: str = string()


@entity
class DescribedDelegationToken:
    """A token."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = array(DescribedDelegationTokenRenewer)


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """The tokens."""

    error_code: int = int16()
    tokens: tuple[DescribedDelegationToken, ...] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
