"""The answers of share and streams groups to requests of the classic protocol.

Kafka: `GroupMetadataManager.classicGroupJoin`, `classicGroupSync`, `classicGroupLeave`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest
    from koordinator.wire.messages.leave_group import LeaveGroupRequest
    from koordinator.wire.messages.sync_group import SyncGroupRequest

    from ...effects import Call
    from ..group import BaseGroup
    from ..group_store import GroupStore


def join(store: GroupStore, group: BaseGroup, call: Call, request: JoinGroupRequest) -> None:
    """Refuse a JoinGroup."""
    refusal = JoinGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id)
    store.reply(call, refusal, other_kind(group))


def other_kind(group: BaseGroup) -> str:
    """Return why a group refuses a JoinGroup, with the remedy."""
    return (
        f"group {group.id!r} is a {group.kind} group, and takes no members of the classic protocol; choose another"
        " group.id"
    )


def sync(store: GroupStore, group: BaseGroup, call: Call, request: SyncGroupRequest) -> None:
    """Refuse a SyncGroup: the group has no member of the classic protocol."""
    del group, request
    store.reply(call, SyncGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))


def leave(store: GroupStore, group: BaseGroup, call: Call, request: LeaveGroupRequest) -> None:
    """Answer a LeaveGroup: none of its members is in the group."""
    del group
    rows = tuple(
        MemberResponse(
            member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=Error.UNKNOWN_MEMBER_ID
        )
        for each in request.members
    )
    store.reply(call, LeaveGroupResponse(members=rows))
