"""CreateAcls (api key 30), versions 0-3, flexible from v2 (KIP-140).

v1 resource_pattern_type (KIP-290) | v3 the resource type USER (KIP-373)
"""

from ..schema import array, entity, int8, int16, int32, message, string


@entity
class AclCreation:
    """A new ACL."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest:
    """New ACLs."""

    creations: tuple[AclCreation, ...] = array(AclCreation)


@entity
class AclCreationResult:
    """The result of one ACL."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse:
    """A row for each ACL, in the order of the request."""

    throttle_time_ms: int = int32()
    results: tuple[AclCreationResult, ...] = array(AclCreationResult)
