"""LeaveGroup: before v3 a request has one member, and its response that member's error at the top level (KIP-345)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

if TYPE_CHECKING:
    from .error_numbering import Numbering

BATCH_SINCE = 3


def normalize_request(request: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """Convert the single member into a list."""
    if version >= BATCH_SINCE:
        return request
    return replace(request, members=(MemberIdentity(member_id=request.member_id),))


def render_response(response: LeaveGroupResponse, version: int, numbering: Numbering) -> LeaveGroupResponse:
    """Move the error of a single member to the top level."""
    members = tuple(replace(row, error_code=numbering(row.error_code)) for row in response.members)
    if version >= BATCH_SINCE:
        return replace(response, members=members)
    error_code = response.error_code or next((row.error_code for row in members), 0)
    return replace(response, error_code=error_code, members=())
