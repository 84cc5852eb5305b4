"""DescribeAcls, CreateAcls and DeleteAcls.

Kafka: `AclApis` and `AclControlManager`. Without an authorizer all three are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from koordinator.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from koordinator.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

from ..acls.acl import CLUSTER_NAME, Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ..refusal import Refusal, RefusedError
from .metadata_changes import AclSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

NO_AUTHORIZER = "No Authorizer is configured on the broker"

NO_TEXT = ""
"""The message of an ACL that was created."""


def describe_acls(cluster: ClusterState, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the ACLs that a filter matches, by pattern."""
    if cluster.authorizer is None:
        return DescribeAclsResponse(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    wanted = _filter_of(request)
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in filter(wanted.matches, cluster.clients.acls):
        row = AclDescription(
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
        )
        found.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(row)
    return DescribeAclsResponse(
        error_message=NO_TEXT,
        resources=tuple(
            DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(rows))
            for (kind, name, pattern), rows in found.items()
        ),
    )


def create_acls(cluster: ClusterState, request: CreateAclsRequest) -> CreateAclsResponse:
    """Create ACLs, each once; one that is refused does not hinder the others."""
    if cluster.authorizer is None:
        row = AclCreationResult(error_code=Error.SECURITY_DISABLED, error_message=_disabled(cluster))
        return CreateAclsResponse(results=(row,) * len(request.creations))
    if any(map(_is_filter, request.creations)):
        # Kafka fails while it reads such a request
        row = AclCreationResult(error_code=Error.UNKNOWN_SERVER_ERROR, error_message=None)
        return CreateAclsResponse(results=(row,) * len(request.creations))
    refusals = [_refuse(each) for each in request.creations]
    acls = [_acl_of(each) for each, refusal in zip(request.creations, refusals, strict=True) if refusal is None]
    new = [AclSet(acl, exists=True) for acl in dict.fromkeys(acls) if acl not in cluster.clients.acls]
    failure: Refusal | None = None
    try:
        cluster.storage.propose(*new)
    except RefusedError as error:
        failure = error.refusal
    return CreateAclsResponse(results=tuple(_result(refusal or failure) for refusal in refusals))


def delete_acls(cluster: ClusterState, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Delete the ACLs that the filters match; each filter names all of its own."""
    if cluster.authorizer is None:
        row = DeleteAclsFilterResult(error_code=Error.SECURITY_DISABLED, error_message=_disabled(cluster))
        return DeleteAclsResponse(filter_results=(row,) * len(request.filters))
    matches = [[*filter(_filter_of(each).matches, cluster.clients.acls)] for each in request.filters]
    try:
        cluster.storage.propose(
            *(AclSet(acl, exists=False) for acl in dict.fromkeys(acl for found in matches for acl in found))
        )
    except RefusedError as error:
        refused = DeleteAclsFilterResult(error_code=error.refusal.error, error_message=error.refusal.message)
        return DeleteAclsResponse(filter_results=(refused,) * len(request.filters))
    return DeleteAclsResponse(
        filter_results=tuple(
            DeleteAclsFilterResult(error_message=None, matching_acls=tuple(map(_deleted, found))) for found in matches
        )
    )


def _deleted(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _disabled(cluster: ClusterState) -> str:
    """Return why ACLs cannot be altered; with ZooKeeper in other words."""
    with_zookeeper = cluster.features.dialect.administers_with_zookeeper
    return f"{NO_AUTHORIZER}." if with_zookeeper else "No Authorizer is configured."


def _filter_of(row: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        row.resource_type_filter,
        row.resource_name_filter,
        row.pattern_type_filter,
        row.principal_filter,
        row.host_filter,
        row.operation,
        row.permission_type,
    )


def _acl_of(row: AclCreation) -> Acl:
    return Acl(
        row.resource_type,
        row.resource_name,
        row.resource_pattern_type,
        row.principal,
        row.host,
        row.operation,
        row.permission_type,
    )


def _result(refusal: Refusal | None) -> AclCreationResult:
    if refusal is None:
        return AclCreationResult(error_message=NO_TEXT)
    return AclCreationResult(error_code=refusal.error, error_message=refusal.error_message)


def _refuse(row: AclCreation) -> Refusal | None:
    """Return why an ACL cannot be created, or None. Kafka reads an unknown number as UNKNOWN."""
    if row.resource_type == ResourceType.CLUSTER and row.resource_name != CLUSTER_NAME:
        return Refusal(Error.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not row.resource_name:
        return Refusal(Error.INVALID_REQUEST, "Invalid empty resource name")
    checks: tuple[tuple[str, int, type[ResourceType | PatternType | Operation | Permission]], ...] = (
        ("resourceType", row.resource_type, ResourceType),
        ("patternType", row.resource_pattern_type, PatternType),
        ("operation", row.operation, Operation),
        ("permissionType", row.permission_type, Permission),
    )
    for name, number, kind in checks:
        if number not in list(kind):
            return Refusal(Error.INVALID_REQUEST, f"Invalid {name} UNKNOWN")
    if ":" not in row.principal:
        text = (
            f"Could not parse principal from `{row.principal}` (no colon is present separating the principal type"
            " from the principal name)"
        )
        return Refusal(Error.INVALID_REQUEST, text)
    return None


def _is_filter(row: AclCreation) -> bool:
    """Return whether an element of an ACL is one that only filters have."""
    return (
        row.resource_type == ResourceType.ANY
        or row.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or row.operation == Operation.ANY
        or row.permission_type == Permission.ANY
    )


RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    ApiKey.DESCRIBE_ACLS: lambda cluster, _, __, request: describe_acls(cluster, request),
    ApiKey.CREATE_ACLS: lambda cluster, _, __, request: create_acls(cluster, request),
    ApiKey.DELETE_ACLS: lambda cluster, _, __, request: delete_acls(cluster, request),
}
"""The responders of these APIs; called with cluster, node id, call and request."""
