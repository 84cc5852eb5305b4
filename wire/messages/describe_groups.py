"""DescribeGroups (api key 15), versions 0-6, flexible from 5.

v1 throttle_time_ms | v3 authorized_operations (KIP-430) | v4 group_instance_id (KIP-345) | v5 flexible |
v6 error_message, and GROUP_ID_NOT_FOUND instead of a Dead group (KIP-1043)
"""

from ..schema import array, binary, boolean, entity, int16, int32, message, string


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """A request for the state and members of classic groups."""

    groups: tuple[str, ...] = array(string)
    include_authorized_operations: bool = boolean("3+")


@entity
class DescribedGroupMember:
    """A member; client_host as Java prints it (/127.0.0.1), metadata of the selected protocol."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@entity
class DescribedGroup:
    """A group; authorized_operations is a bit field, -2147483648 unless requested."""

    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: tuple[DescribedGroupMember, ...] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """A row for each group of the request."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
