"""DescribeAcls (api key 29), versions 0-3, flexible from v2 (KIP-140).

v1 pattern_type (KIP-290) | v3 the resource type USER (KIP-373)
"""

from ..schema import array, entity, int8, int16, int32, message, string


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsRequest:
    """A filter of ACLs; null matches any name."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@entity
class AclDescription:
    """An ACL of a resource."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@entity
class DescribeAclsResource:
    """A resource with its ACLs."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    acls: tuple[AclDescription, ...] = array(AclDescription)


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsResponse:
    """The resources that have matching ACLs."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: tuple[DescribeAclsResource, ...] = array(DescribeAclsResource)
