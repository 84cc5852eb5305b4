"""DescribeGroups. Kafka: `GroupMetadataManager.describeGroups`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

from ...acls.acl import NO_OPERATIONS
from .group import ClassicGroup, ClassicGroupState

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore

OPERATIONS_SINCE = 3

UNKNOWN_GROUP_IS_AN_ERROR_SINCE = 6


def describe_groups(store: GroupStore, now: int, call: Call, request: DescribeGroupsRequest) -> None:
    """Describe groups. An unknown group is Dead, and from v6 on GROUP_ID_NOT_FOUND (KIP-1043)."""
    operations = _operations(store, call, requested=request.include_authorized_operations)
    rows = tuple(_describe(store, now, call, group_id, operations) for group_id in request.groups)
    store.reply(call, DescribeGroupsResponse(groups=rows))


def _operations(store: GroupStore, call: Call, *, requested: bool) -> int:
    if call.api_version < OPERATIONS_SINCE:
        return NO_OPERATIONS
    return store.dialect.group_operations if requested else store.dialect.default_group_operations


def _describe(store: GroupStore, now: int, call: Call, group_id: str, operations: int) -> DescribedGroup:
    status = store.status(group_id)
    if status is not Error.NONE:
        unknown = _operations(store, call, requested=False)
        return DescribedGroup(error_code=status, group_id=group_id, authorized_operations=unknown)
    group = store.find_visible(now, group_id)
    if not isinstance(group, ClassicGroup):
        dead = DescribedGroup(
            group_id=group_id, group_state=ClassicGroupState.DEAD.value, authorized_operations=operations
        )
        if call.api_version < UNKNOWN_GROUP_IS_AN_ERROR_SINCE:
            return dead
        return DescribedGroup(
            group_id=group_id,
            group_state=ClassicGroupState.DEAD.value,
            error_code=Error.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {'not found' if group is None else 'is not a classic group'}.",
        )
    stable = group.state is ClassicGroupState.STABLE
    assigned = stable or store.dialect.describes_assignments_of_unstable_groups
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment if assigned else b"",
            )
            for member in group.members.values()
        ),
        authorized_operations=operations,
    )
