"""The rights of delegation tokens (KIP-48, KIP-373): to create one for another owner, and to see those of others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...core.acls.acl import Operation, ResourceType
from ...core.data.delegation_tokens import creation_refused, holders_of, may_ask, owner_of
from .guards import Admitted, Refused

if TYPE_CHECKING:
    from koordinator.wire.messages.create_delegation_token import CreateDelegationTokenRequest
    from koordinator.wire.messages.describe_delegation_token import (
        DescribedDelegationToken,
        DescribeDelegationTokenResponse,
    )

    from .guards import Client


def create_token(client: Client, request: CreateDelegationTokenRequest) -> Refused | Admitted:
    """Need CreateTokens of the owner, if it is another user."""
    owner = owner_of(client.call, request)
    is_own = not may_ask(client.call) or owner == client.call.principal
    if is_own or client.may(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return Admitted(request)
    return Refused(creation_refused(client.call, request, Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED))


def seen_tokens(client: Client, response: DescribeDelegationTokenResponse) -> DescribeDelegationTokenResponse:
    """Leave out tokens of others, without Describe of the token or DescribeTokens of its owner."""
    return replace(response, tokens=tuple(each for each in response.tokens if _is_seen(client, each)))


def _is_seen(client: Client, row: DescribedDelegationToken) -> bool:
    token = client.cluster.clients.tokens.get(row.token_id)
    if token is None or client.call.principal in holders_of(token):
        return True
    return client.can(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, row.token_id) or client.can(
        Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner
    )
