"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554).

Kafka: `ScramControlManager` and `ScramImage`; with ZooKeeper `ZkAdminManager`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from koordinator.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

from ..java.hash_order import java_order
from ..refusal import Refusal, RefusedError
from .metadata_changes import ScramCredentialSet
from .scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS, credential_of_salted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

TWICE = Refusal(Error.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
MISSING = Refusal(Error.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
NOT_CONTROLLER = Refusal(Error.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
NO_NAME = "Username must not be empty"
FAILED = "The server experienced an unexpected error when processing the request."

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_scram_credentials(
    cluster: ClusterState, node_id: int, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Insert, replace and delete credentials, those of each user completely or not at all."""
    alterations: tuple[Alteration, ...] = (*request.deletions, *request.upsertions)
    in_controller = not cluster.features.dialect.administers_with_zookeeper
    if not (cluster.features.dialect.any_broker_serves_admin_requests or cluster.brokers.controller_id == node_id):
        users = dict.fromkeys(each.name for each in alterations)
        return AlterUserScramCredentialsResponse(results=tuple(_row(user, NOT_CONTROLLER) for user in users))
    refusals = (_refusals if in_controller else _refusals_with_zookeeper)(cluster.clients.credentials, alterations)
    accepted = [_change_of(each) for each in alterations if refusals[each.name] is None]
    try:
        cluster.storage.propose(*accepted)
    except RefusedError as error:
        refusals |= {each.user: error.refusal for each in accepted}
    # of the users that are not refused, those with deletions are first
    rows = sorted(java_order(refusals), key=lambda user: _turn(refusals[user], user, request))
    altered = None if in_controller else ""
    return AlterUserScramCredentialsResponse(results=tuple(_row(user, refusals[user], altered) for user in rows))


def _change_of(each: Alteration) -> ScramCredentialSet:
    if isinstance(each, ScramCredentialDeletion):
        return ScramCredentialSet(each.name, each.mechanism, None)
    return credential_of_salted(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)


def _turn(refusal: Refusal | None, user: str, request: AlterUserScramCredentialsRequest) -> int:
    is_deleted = any(each.name == user for each in request.deletions)
    return 2 if refusal is not None else 0 if is_deleted else 1


def _row(user: str, refusal: Refusal | None, altered: str | None = None) -> AlterUserScramCredentialsResult:
    """Return the row of a user; `altered` is the message of success."""
    if refusal is None:
        return AlterUserScramCredentialsResult(user=user, error_message=altered)
    return AlterUserScramCredentialsResult(user=user, error_code=refusal.error, error_message=refusal.error_message)


def _refusals(
    stored: Mapping[str, Mapping[int, ScramCredentialSet]], alterations: Sequence[Alteration]
) -> dict[str, Refusal | None]:
    """Return why the controller refuses the changes of each user, or None: it checks one after the other."""
    refusals: dict[str, Refusal | None] = {}
    failing: dict[str, Refusal] = {}
    for each in alterations:
        if refusals.get(each.name) is None:
            refusals[each.name] = TWICE if each.name in refusals else _refuse(stored, each)
            if refusals[each.name] is None and _is_without_password(each):
                # noticed when all changes are checked
                failing[each.name] = Refusal(Error.UNKNOWN_SERVER_ERROR, "")
    return {user: refusal or failing.get(user) for user, refusal in refusals.items()}


def _refuse(stored: Mapping[str, Mapping[int, ScramCredentialSet]], each: Alteration) -> Refusal | None:
    refusal = _refuse_alone(each)
    if refusal is None and isinstance(each, ScramCredentialDeletion):
        return None if each.mechanism in stored.get(each.name, {}) else MISSING
    return refusal


def _refuse_alone(each: Alteration) -> Refusal | None:
    """Return why a change is refused, whatever is stored."""
    if not each.name:
        return Refusal(Error.UNACCEPTABLE_CREDENTIAL, NO_NAME)
    if each.mechanism not in MECHANISMS:
        return Refusal(Error.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(each, ScramCredentialUpsertion) and not ITERATIONS_MIN <= each.iterations <= ITERATIONS_MAX:
        problem = f"Too {'few' if each.iterations < ITERATIONS_MIN else 'many'} iterations"
        return Refusal(Error.UNACCEPTABLE_CREDENTIAL, problem)
    return None


def _is_without_password(each: Alteration) -> bool:
    return isinstance(each, ScramCredentialUpsertion) and not each.salted_password


def _refusals_with_zookeeper(
    stored: Mapping[str, Mapping[int, ScramCredentialSet]], alterations: Sequence[Alteration]
) -> dict[str, Refusal | None]:
    """Return why a broker with ZooKeeper refuses the changes of each user, or None: one kind of mistake at a time."""
    times = Counter((each.name, each.mechanism) for each in alterations)
    illegal = {each.name: refusal for each in alterations if (refusal := _refuse_alone(each))}
    repeated = {each.name: TWICE for each in alterations if times[each.name, each.mechanism] > 1}
    missing = {
        each.name: MISSING
        for each in alterations
        if isinstance(each, ScramCredentialDeletion) and each.mechanism not in stored.get(each.name, {})
    }
    failing = {
        each.name: Refusal(Error.UNKNOWN_SERVER_ERROR, FAILED) for each in alterations if _is_without_password(each)
    }
    refused = failing | missing | repeated | illegal
    return {each.name: refused.get(each.name) for each in alterations}


def describe_scram_credentials(
    cluster: ClusterState, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms and iterations of some users, or of all."""
    stored, in_controller = cluster.clients.credentials, not cluster.features.dialect.administers_with_zookeeper
    times = Counter([each.name for each in request.users or ()] or list(stored))
    users = java_order(times) if in_controller else times if request.users else sorted(times)
    rows = []
    for user in users:
        refusal = None
        if not user and not in_controller:
            refusal = Refusal(Error.RESOURCE_NOT_FOUND, NO_NAME)
        elif times[user] > 1:
            problem = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            refusal = Refusal(Error.DUPLICATE_RESOURCE, problem)
        elif user not in stored:
            problem = f"Attempt to describe a user credential that does not exist: {user}"
            refusal = Refusal(Error.RESOURCE_NOT_FOUND, problem)
        credentials = {} if refusal else stored[user]
        rows.append(
            DescribeUserScramCredentialsResult(
                user=user,
                error_code=refusal.error if refusal else Error.NONE,
                error_message=refusal.message if refusal else "",
                credential_infos=tuple(
                    CredentialInfo(mechanism=mechanism, iterations=credentials[mechanism].iterations or 0)
                    for mechanism in sorted(credentials)
                ),
            )
        )
    return DescribeUserScramCredentialsResponse(error_message="", results=tuple(rows))


RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda cluster, _, __, request: describe_scram_credentials(
        cluster, request
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda cluster, node, _, request: alter_scram_credentials(
        cluster, node, request
    ),
}
"""The responders of these APIs; called with cluster, node id, call and request."""
