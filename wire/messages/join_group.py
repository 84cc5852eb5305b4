"""JoinGroup (api key 11), versions 0-9, flexible from 6.

v1 rebalance_timeout_ms (KIP-62) | v2 throttle_time_ms | v4 MEMBER_ID_REQUIRED (KIP-394) |
v5 group_instance_id (KIP-345) | v6 flexible | v7 protocol_type in the response, nullable protocol_name
(KIP-559) | v8 reason (KIP-800) | v9 skip_assignment (KIP-814)
"""

from ..schema import array, binary, boolean, entity, int16, int32, message, string


@entity
class JoinGroupRequestProtocol:
    """A protocol that a member supports (of consumers: an assignor), with its opaque metadata."""

    name: str = string()
    metadata: bytes = binary()


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """A request to join or rejoin a group, with protocols in order of preference."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


@entity
class JoinGroupResponseMember:
    """A member in the leader's response, with the metadata of the selected protocol."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = binary()


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation; only the leader gets members. generation_id is -1 with an error."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)
