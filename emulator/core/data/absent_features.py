"""Kafka's refusals for features that are not configured here, as in a broker without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from koordinator.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from koordinator.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from koordinator.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

REQUESTER_SINCE = 3
"""The first version of CreateDelegationToken that names the requester (KIP-373)."""

USER, ANONYMOUS = "User", "ANONYMOUS"
"""The principal of every client of a plain listener."""


def _refuse_token(version: int, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """Refuse a token for an owner: the client if the request names none."""
    name = request.owner_principal_name
    return CreateDelegationTokenResponse(
        error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=(request.owner_principal_type or "") if name else USER,
        principal_name=name or ANONYMOUS,
        token_requester_principal_type=USER if version >= REQUESTER_SINCE else "",
        token_requester_principal_name=ANONYMOUS if version >= REQUESTER_SINCE else "",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


RESPONDERS: Mapping[type, Callable[[ClusterState, int, Call, Any], Message]] = {
    # the listener has no SASL, so the connection is past authentication
    SaslHandshakeRequest: lambda _, __, ___, ____: SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE),
    SaslAuthenticateRequest: lambda _, __, ___, ____: SaslAuthenticateResponse(
        error_code=Error.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    ),
    # a token is for connections that are authenticated
    CreateDelegationTokenRequest: lambda _, __, call, request: _refuse_token(call.api_version, request),
    RenewDelegationTokenRequest: lambda _, __, ___, ____: RenewDelegationTokenResponse(
        error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    ),
    ExpireDelegationTokenRequest: lambda _, __, ___, ____: ExpireDelegationTokenResponse(
        error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    ),
    DescribeDelegationTokenRequest: lambda _, __, ___, ____: DescribeDelegationTokenResponse(
        error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    ),
}
"""The responders of these APIs; called with cluster, node id, call and request."""
