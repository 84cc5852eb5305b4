"""Heartbeat (api key 12), versions 0-4, flexible from 4.

v1 throttle_time_ms | v3 group_instance_id (KIP-345) | v4 flexible
"""

from ..schema import int16, int32, message, string


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """A heartbeat of a member."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """The response; error 27 makes the member rejoin."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
