"""SyncGroup (api key 14), versions 0-5, flexible from 4.

v1 throttle_time_ms | v3 group_instance_id (KIP-345) | v4 flexible | v5 protocol_type and protocol_name,
which are nullable but mandatory (KIP-559)
"""

from ..schema import array, binary, entity, int16, int32, message, string


@entity
class SyncGroupRequestAssignment:
    """The assignment of one member, opaque bytes."""

    member_id: str = string()
    assignment: bytes = binary()


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """A request for the member's assignment; the leader sends every member's, a follower an empty list."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The member's assignment; empty (not null) with an error."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary()
