"""DeleteAcls (api key 31), versions 0-3, flexible from v2 (KIP-140).

v1 pattern_type (KIP-290) | v3 the resource type USER (KIP-373)
"""

from ..schema import array, entity, int8, int16, int32, message, string


@entity
class DeleteAclsFilter:
    """A filter of ACLs; null matches any name."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    """Filters of the ACLs to delete."""

    filters: tuple[DeleteAclsFilter, ...] = array(DeleteAclsFilter)


@entity
class DeleteAclsMatchingAcl:
    """A deleted ACL."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@entity
class DeleteAclsFilterResult:
    """The result of one filter."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = array(DeleteAclsMatchingAcl)


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    """A row for each filter, in the order of the request."""

    throttle_time_ms: int = int32()
    filter_results: tuple[DeleteAclsFilterResult, ...] = array(DeleteAclsFilterResult)
