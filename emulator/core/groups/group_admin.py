"""ListGroups and DeleteGroups: requests of admin tools for groups of every kind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..effects import Call
    from .group_store import GroupStore


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
        for group in store.visible()
        if group.partition not in store.loading
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
        answers = [(call, partial(deleted, group_id=group.id))] if must_wait else ()
        store.kind_of(group).delete(store, group, answers)
    if not (must_wait and empty_groups):
        store.reply(call, _deletion_response(results))


def _deletion_response(results: Mapping[str, Error]) -> DeleteGroupsResponse:
    rows = tuple(DeletableGroupResult(group_id=name, error_code=error) for name, error in results.items())
    return DeleteGroupsResponse(results=rows)
