"""LeaveGroup (13), versions 0-5.

v0-2 one member, whose result is the answer's | v3 several members, each with its result (KIP-345) | v4 flexible |
v5 reason (KIP-800). Not emulated: that 2.4 and 2.8 fail (-1) for an id handed out that comes with an instance id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

if TYPE_CHECKING:
    from .numbering import Numbering

BATCH_SINCE = 3


def ask(request: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """One member is a batch of one."""
    if version >= BATCH_SINCE:
        return request
    return replace(request, members=(MemberIdentity(member_id=request.member_id),))


def answer(response: LeaveGroupResponse, version: int, numbering: Numbering) -> LeaveGroupResponse:
    """A batch of one is answered at the top level."""
    members = tuple(replace(row, error_code=numbering(row.error_code)) for row in response.members)
    if version >= BATCH_SINCE:
        return replace(response, members=members)
    error_code = response.error_code or next((row.error_code for row in members), 0)
    return replace(response, error_code=error_code, members=())
