"""ListGroups (api key 16), versions 0-5, flexible from 3.

v1 throttle_time_ms | v3 flexible | v4 states_filter, group_state (KIP-518) |
v5 types_filter, group_type (KIP-848)
"""

from ..schema import array, entity, int16, int32, message, string


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """A request for the broker's groups; an empty filter matches every group."""

    states_filter: tuple[str, ...] = array(string, "4+")
    types_filter: tuple[str, ...] = array(string, "5+")


@entity
class ListedGroup:
    """A group; protocol_type is empty for a group with offsets only."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """The groups that this broker coordinates."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: tuple[ListedGroup, ...] = array(ListedGroup)
