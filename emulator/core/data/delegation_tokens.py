"""Delegation tokens (KIP-48): a user creates one, and gives it to clients, which log in with it by SCRAM.

The password of a token is an HMAC of its id with the secret of the cluster. Kafka:
`DelegationTokenControlManager`, `DelegationTokenManager`, `KafkaApis.allowTokenRequests`.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from koordinator.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from koordinator.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from koordinator.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

from ..acls.acl import ANONYMOUS
from ..refusal import RefusedError
from .metadata_changes import DelegationTokenSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

USER = "User"

REQUESTER_SINCE = 3
"""The first version of CreateDelegationToken that names the requester (KIP-373)."""

LONG_MAX = 2**63 - 1


def hmac_of(secret: str, token_id: str) -> bytes:
    """Return the HMAC of a token: with it clients log in, renew and expire the token."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def password_of(secret: str, token_id: str) -> str:
    """Return the password of a token."""
    return base64.b64encode(hmac_of(secret, token_id)).decode()


def may_ask(call: Call) -> bool:
    """Return whether a client may ask for tokens: it has authenticated, and not by a token."""
    return bool(call.principal) and call.principal != ANONYMOUS and not call.has_token


def owner_of(call: Call, request: CreateDelegationTokenRequest) -> str:
    """Return the principal that a token is for: by default the client's."""
    if not request.owner_principal_name:
        return call.principal or ANONYMOUS
    return f"{request.owner_principal_type or ''}:{request.owner_principal_name}"


def creation_refused(
    call: Call, request: CreateDelegationTokenRequest, error: Error, timestamp: int = -1
) -> CreateDelegationTokenResponse:
    """Return a response without a token. A broker's has the times -1, and the controller's 0."""
    owner_type, _, owner_name = owner_of(call, request).partition(":")
    requester_type, _, requester_name = (call.principal or ANONYMOUS).partition(":")
    names_requester = call.api_version >= REQUESTER_SINCE
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type if names_requester else "",
        token_requester_principal_name=requester_name if names_requester else "",
        issue_timestamp_ms=timestamp,
        expiry_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
    )


def refuse_creation(call: Call, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse | None:
    """Return a broker's refusal of a token, whoever its owner is."""
    if not may_ask(call):
        return creation_refused(call, request, Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return None


def create(
    cluster: ClusterState, now: int, call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Create a token that lives until its maximum, and expires before unless it is renewed."""
    refused = refuse_creation(call, request)
    if refused is not None:
        return refused
    settings, secret = cluster.settings, cluster.settings.delegation_token_secret_key
    if any(each.principal_type != USER for each in request.renewers):
        return creation_refused(call, request, Error.INVALID_PRINCIPAL_TYPE)
    if not secret:
        return creation_refused(call, request, Error.DELEGATION_TOKEN_AUTH_DISABLED, 0)
    longest = settings.delegation_token_max_lifetime_ms
    lifetime_ms = min(longest, request.max_lifetime_ms) if request.max_lifetime_ms > 0 else longest
    ends_at = _sum(now, lifetime_ms)
    token = DelegationTokenSet(
        token_id=base64.urlsafe_b64encode(cluster.new_uuid().bytes).decode().rstrip("="),
        owner=owner_of(call, request),
        requester=call.principal,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issued_at=now,
        ends_at=ends_at,
        expires_at=min(ends_at, _sum(now, settings.delegation_token_expiry_time_ms)),
    )
    try:
        cluster.storage.propose(token)
    except RefusedError as error:
        return creation_refused(call, request, error.refusal.error, 0)
    assert token.expires_at is not None, "a new token exists"
    return replace(
        creation_refused(call, request, Error.NONE),
        issue_timestamp_ms=now,
        expiry_timestamp_ms=token.expires_at,
        max_timestamp_ms=ends_at,
        token_id=token.token_id,
        hmac=hmac_of(secret, token.token_id),
    )


def renew(
    cluster: ClusterState, now: int, call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Put off the expiry of a token, at most to its end."""
    if not may_ask(call):
        error = Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    token = _token_of(cluster, request.hmac)
    refusal = _refuse_any(cluster, token)
    if refusal or token is None:
        return RenewDelegationTokenResponse(error_code=refusal)
    if _has_expired(token, now):
        return RenewDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_EXPIRED)
    if not _may_change(call, token):
        return RenewDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_OWNER_MISMATCH)
    period_ms = cluster.settings.delegation_token_expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    error, expires_at = _changed(cluster, token, min(token.ends_at, now + period_ms))
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expires_at)


def expire(
    cluster: ClusterState, now: int, call: Call, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Set the expiry of a token; a negative period removes it at once."""
    if not may_ask(call):
        error = Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    token, period_ms = _token_of(cluster, request.hmac), request.expiry_time_period_ms
    refusal = _refuse_any(cluster, token)
    if refusal or token is None:
        return ExpireDelegationTokenResponse(error_code=refusal)
    if not _may_change(call, token):
        return ExpireDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_OWNER_MISMATCH)
    if period_ms >= 0 and _has_expired(token, now):
        return ExpireDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_EXPIRED)
    error, expires_at = _changed(cluster, token, min(token.ends_at, _sum(now, period_ms)) if period_ms >= 0 else None)
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=now if period_ms < 0 else expires_at)


def _refuse_any(cluster: ClusterState, token: DelegationTokenSet | None) -> Error:
    """Return why a token cannot be changed, or NONE."""
    if not cluster.settings.delegation_token_secret_key:
        return Error.DELEGATION_TOKEN_AUTH_DISABLED
    return Error.NONE if token is not None else Error.DELEGATION_TOKEN_NOT_FOUND


def _may_change(call: Call, token: DelegationTokenSet) -> bool:
    return call.principal in (token.owner, *token.renewers)


def _changed(cluster: ClusterState, token: DelegationTokenSet, expires_at: int | None) -> tuple[Error, int]:
    """Store the expiry of a token; None removes it. Return an error, and the new expiry."""
    try:
        cluster.storage.propose(replace(token, expires_at=expires_at))
    except RefusedError as error:
        return error.refusal.error, 0
    return Error.NONE, expires_at or 0


def describe(cluster: ClusterState, call: Call, request: DescribeDelegationTokenRequest) -> Message:
    """Return the tokens of some owners, or all, with their HMACs."""
    secret = cluster.settings.delegation_token_secret_key
    if not may_ask(call):
        return DescribeDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not secret:
        return DescribeDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    return DescribeDelegationTokenResponse(
        tokens=tuple(
            _described(token, secret, call.api_version)
            for token in cluster.clients.tokens.values()
            if owners is None or not owners.isdisjoint(holders_of(token))
        )
    )


def holders_of(token: DelegationTokenSet) -> tuple[str, ...]:
    """Return the principals that may describe a token without a right: owner, requester and renewers."""
    return token.owner, token.requester, *token.renewers


def _described(token: DelegationTokenSet, secret: str, version: int) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    names_requester = version >= REQUESTER_SINCE
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type if names_requester else "",
        token_requester_principal_name=requester_name if names_requester else "",
        issue_timestamp=token.issued_at,
        expiry_timestamp=token.expires_at or 0,
        max_timestamp=token.ends_at,
        token_id=token.token_id,
        hmac=hmac_of(secret, token.token_id),
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in (each.partition(":") for each in token.renewers)
        ),
    )


def _token_of(cluster: ClusterState, digest: bytes) -> DelegationTokenSet | None:
    """Return the token with an HMAC."""
    secret = cluster.settings.delegation_token_secret_key
    tokens = cluster.clients.tokens.values() if secret else ()
    return next((each for each in tokens if hmac.compare_digest(hmac_of(secret, each.token_id), digest)), None)


def _has_expired(token: DelegationTokenSet, now: int) -> bool:
    return token.ends_at < now or (token.expires_at or 0) < now


def remove_expired(cluster: ClusterState, now: int) -> None:
    """Remove the tokens that have expired by a check (`delegation.token.expiry.check.interval.ms`)."""
    expired = [each for each in cluster.clients.tokens.values() if _has_expired(each, now)]
    if expired:
        cluster.storage.propose(*(replace(each, expires_at=None) for each in expired))


def _sum(now: int, duration_ms: int) -> int:
    return min(now + duration_ms, LONG_MAX)


RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    ApiKey.CREATE_DELEGATION_TOKEN: create,
    ApiKey.RENEW_DELEGATION_TOKEN: renew,
    ApiKey.EXPIRE_DELEGATION_TOKEN: expire,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda cluster, _, call, request: describe(cluster, call, request),
}
"""The responders of these APIs; called with cluster, time, call and request."""
