"""LeaveGroup (api key 13), versions 0-5, flexible from 4.

v1 throttle_time_ms | v3 many members at once, group_instance_id (KIP-345) | v4 flexible | v5 reason (KIP-800)
"""

from ..schema import array, entity, int16, int32, message, string


@entity
class MemberIdentity:
    """A member to remove: by member_id, or by group_instance_id with an empty member_id."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """Remove one member (v0-2: member_id) or several (v3+: members)."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: tuple[MemberIdentity, ...] = array(MemberIdentity, "3+")


@entity
class MemberResponse:
    """The result of one member of the request."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+")
    error_code: int = int16()


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """The result: of the single member (v0-2), or of the group and of each member (v3+)."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: tuple[MemberResponse, ...] = array(MemberResponse, "3+")
