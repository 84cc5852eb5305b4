"""DescribeGroups, ListGroups, DeleteGroups: what admin tools see of groups, and may do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.core.group import Group, State
from koordinator.emulator.core.group_records import group_tombstone, offset_tombstone
from koordinator.emulator.core.writes import DeletionAnswer, GroupDeleted, group_write_error
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from koordinator.emulator.core.effects import Call
    from koordinator.emulator.core.stage import Stage

CLASSIC = "classic"
"""The only group type here; groups of KIP-848 are `consumer`."""

AUTHORIZED_OPERATIONS = 3400
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS: all that apply, for there is no authorizer."""

UNKNOWN_GROUP_IS_AN_ERROR_SINCE = 6


def describe_groups(stage: Stage, now: int, call: Call, request: DescribeGroupsRequest) -> None:
    """State, protocol and members. An unknown group is Dead; from v6 on GROUP_ID_NOT_FOUND, too (KIP-1043)."""
    operations = AUTHORIZED_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    rows = tuple(_describe(stage, now, call, group_id, operations) for group_id in request.groups)
    stage.reply(call, DescribeGroupsResponse(groups=rows))


NOT_ASKED = -(1 << 31)


def _describe(stage: Stage, now: int, call: Call, group_id: str, operations: int) -> DescribedGroup:
    status = stage.status(group_id)
    if status is not Error.NONE:
        return DescribedGroup(error_code=status, group_id=group_id)
    group = stage.find(now, group_id)
    if group is None:
        dead = DescribedGroup(group_id=group_id, group_state=State.DEAD.value, authorized_operations=operations)
        if call.api_version < UNKNOWN_GROUP_IS_AN_ERROR_SINCE:
            return dead
        return DescribedGroup(
            group_id=group_id,
            group_state=State.DEAD.value,
            error_code=Error.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} not found.",
            authorized_operations=operations,
        )
    stable = group.state is State.STABLE
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
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
        authorized_operations=operations,
    )


def list_groups(stage: Stage, now: int, call: Call, request: ListGroupsRequest) -> None:
    """The groups of this node, empty and simple ones included; filters compare without case (KIP-518, KIP-848)."""
    del now
    if stage.loading:
        return stage.reply(call, ListGroupsResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS))
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = [
        group
        for group in stage.groups.values()
        if (not states or group.state.value.lower() in states) and (not types or CLASSIC in types)
    ]
    return stage.reply(call, ListGroupsResponse(groups=tuple(_listed(group) for group in listed)))


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC,
    )


def delete_groups(stage: Stage, now: int, call: Call, request: DeleteGroupsRequest) -> None:
    """Delete groups that are empty, with their offsets (KIP-229); one result for each name."""
    answer = DeletionAnswer(call, dict.fromkeys(request.groups_names, Error.NONE))
    doomed = []
    for group_id in answer.results:
        group = stage.find(now, group_id)
        error = stage.status(group_id)
        if error is Error.NONE:
            if group is None:
                error = Error.GROUP_ID_NOT_FOUND
            elif group.state is not State.EMPTY:
                error = Error.NON_EMPTY_GROUP
            else:
                doomed.append(group)
        answer.results[group_id] = error
    answer.waiting = len(doomed)
    for group in doomed:
        records = [offset_tombstone(group, topic, partition) for topic, partition in group.offsets]
        stage.vanish(group)
        stage.append(group.id, [*records, group_tombstone(group)], GroupDeleted(group, answer))
    if not doomed:
        _answer(stage, answer)


def group_deleted(stage: Stage, write: GroupDeleted, error: Error) -> None:
    """The tombstones are in the log; or the group is back, unless somebody has made a new one since."""
    group, answer = write.group, write.answer
    if error is not Error.NONE and group.id not in stage.groups:
        stage.bring_back(group)
    if answer is not None:
        answer.results[group.id] = Error.NONE if error is Error.NONE else group_write_error(error)
        answer.waiting -= 1
        if not answer.waiting:
            _answer(stage, answer)


def _answer(stage: Stage, answer: DeletionAnswer) -> None:
    rows = tuple(DeletableGroupResult(group_id=name, error_code=error) for name, error in answer.results.items())
    stage.reply(answer.call, DeleteGroupsResponse(results=rows))
