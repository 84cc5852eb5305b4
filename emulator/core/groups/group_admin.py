"""DescribeGroups, ListGroups and DeleteGroups: the requests of admin tools."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

from .classic.group import ClassicGroup, ClassicGroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..effects import Call
    from .group_store import GroupStore

OPERATIONS_SINCE = 3
NO_OPERATIONS = -(1 << 31)
"""The authorized operations in versions without the field."""

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


def list_groups(store: GroupStore, now: int, call: Call, request: ListGroupsRequest) -> None:
    """List the groups of this node, empty and simple ones included, filtered by state (KIP-518) and type (KIP-848)."""
    del now
    error = Error.COORDINATOR_LOAD_IN_PROGRESS if store.loading else Error.NONE
    if store.loading and not store.dialect.lists_groups_while_loading:
        return store.reply(call, ListGroupsResponse(error_code=error))
    normalize = str.lower if store.dialect.state_filter_ignores_case else str
    trim = str.strip if store.dialect.state_filter_is_trimmed else str
    states = {normalize(trim(state)) for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    rows = tuple(
        ListedGroup(
            group_id=group.id,
            protocol_type=group.listed_protocol_type,
            group_state=group.state_name,
            group_type=group.kind,
        )
        for group in store.groups.values()
        if group.partition not in store.loading
        and store.is_visible(group)
        and (not states or normalize(group.state_name) in states)
        and (not types or group.kind in types)
    )
    return store.reply(call, ListGroupsResponse(error_code=error, groups=rows))


def delete_groups(store: GroupStore, now: int, call: Call, request: DeleteGroupsRequest) -> None:
    """Delete empty groups and their offsets (KIP-229); one result per group id."""
    results = dict.fromkeys(request.groups_names, Error.NONE)
    empty_groups = []
    for group_id in results:
        group = store.find(now, group_id)
        error = store.status(group_id)
        if error is Error.NONE:
            if group is None:
                error = Error.GROUP_ID_NOT_FOUND
            elif not group.is_empty:
                error = Error.NON_EMPTY_GROUP
            else:
                empty_groups.append(group)
        results[group_id] = error
    must_wait, waiting = store.dialect.waits_for_log, {group.id for group in empty_groups}

    def deleted(error: Error, *, group_id: str) -> DeleteGroupsResponse | None:
        """Return the response with the last of the writes."""
        results[group_id] = store.dialect.group_write_error(error)
        waiting.discard(group_id)
        return None if waiting else _deletion_response(results)

    for group in empty_groups:
        store.delete_empty_group(group, [(call, partial(deleted, group_id=group.id))] if must_wait else ())
    if not (must_wait and empty_groups):
        store.reply(call, _deletion_response(results))


def _deletion_response(results: Mapping[str, Error]) -> DeleteGroupsResponse:
    rows = tuple(DeletableGroupResult(group_id=name, error_code=error) for name, error in results.items())
    return DeleteGroupsResponse(results=rows)
