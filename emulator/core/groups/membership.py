"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: what no group has to see; the kind of the group answers the rest.

A group that does not exist is a classic one, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

from .classic import changes, join
from .classic.membership import leave_row
from .classic.rebalance import join_error, sync_error

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
    from koordinator.wire.messages.sync_group import SyncGroupRequest

    from ..effects import Call
    from .group_store import GroupStore

NONE = Error.NONE
"""Bound once: on Python 3.11 the attribute lookup takes as long as a call."""

HEARTBEAT_OK = HeartbeatResponse()
"""The response to almost every heartbeat."""

PROTOCOL_REQUIRED_SINCE = 5
"""The first version of SyncGroup that has to name the protocol (KIP-559)."""


def join_group(store: GroupStore, now: int, call: Call, request: JoinGroupRequest) -> None:
    """Answer or park a JoinGroup."""
    refusal = _join_refusal(store, request)
    if refusal is not None:
        return store.reply(call, *refusal)
    group = store.find(now, request.group_id)
    if group is not None:
        return store.kind_of(group).join(store, group, call, request)
    if request.member_id:
        return store.reply(call, join_error(Error.UNKNOWN_MEMBER_ID, request.member_id))
    return join.join_new_group(store, changes.create(store, now, request.group_id), call, request)


def _join_refusal(store: GroupStore, request: JoinGroupRequest) -> tuple[JoinGroupResponse, str] | None:
    """Return the response to a JoinGroup that no group has to see, and its reason; None if it may join."""
    if not request.group_id:
        return join_error(Error.INVALID_GROUP_ID, request.member_id), "group.id is empty"
    settings, dialect = store.settings, store.dialect
    minimum, maximum = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    in_bounds = minimum <= request.session_timeout_ms <= maximum
    status = store.status(request.group_id)
    if not in_bounds and (status is Error.NONE or dialect.join_checks_session_timeout_first):
        reason = (
            f"session.timeout.ms={request.session_timeout_ms} must be from {minimum} (group.min.session.timeout.ms)"
            f" to {maximum} (group.max.session.timeout.ms)"
        )
        return join_error(Error.INVALID_SESSION_TIMEOUT, request.member_id), reason
    if status is not Error.NONE:
        return join_error(status, request.member_id if dialect.join_echoes_member_id_when_unavailable else ""), ""
    return None


def sync_group(store: GroupStore, now: int, call: Call, request: SyncGroupRequest) -> None:
    """Answer or park a SyncGroup."""
    error = _sync_refusal(store, call, request)
    if error is not Error.NONE:
        return store.reply(call, sync_error(error))
    group = store.find(now, request.group_id)
    if group is None:
        return store.reply(call, sync_error(Error.UNKNOWN_MEMBER_ID))
    return store.kind_of(group).sync(store, group, call, request)


def _sync_refusal(store: GroupStore, call: Call, request: SyncGroupRequest) -> Error:
    if call.api_version >= PROTOCOL_REQUIRED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        # precedes every other check, even for unknown groups
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    status = store.status(request.group_id)
    return store.dialect.sync_error_while_loading if status is Error.COORDINATOR_LOAD_IN_PROGRESS else status


def heartbeat(store: GroupStore, now: int, call: Call, request: HeartbeatRequest) -> None:
    """Answer a heartbeat."""
    error = _heartbeat_error(store, now, call, request)
    store.reply(call, HEARTBEAT_OK if error is NONE else HeartbeatResponse(error_code=error))


def _heartbeat_error(store: GroupStore, now: int, call: Call, request: HeartbeatRequest) -> Error:
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    status = store.status(request.group_id)
    if status is not NONE:
        # no member loses its membership because the coordinator is still loading
        return NONE if status is Error.COORDINATOR_LOAD_IN_PROGRESS else status
    group = store.find(now, request.group_id)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    return store.kind_of(group).heartbeat(store, group, call, request)


def leave_group(store: GroupStore, now: int, call: Call, request: LeaveGroupRequest) -> None:
    """Remove members by member id or instance id (KIP-345); each entry has its own result."""
    if not request.group_id:
        return store.reply(call, LeaveGroupResponse(error_code=Error.INVALID_GROUP_ID))
    status = store.status(request.group_id)
    if status is not Error.NONE:
        return store.reply(call, LeaveGroupResponse(error_code=status))
    group = store.find(now, request.group_id)
    if group is None:
        rows = tuple(leave_row(identity, Error.UNKNOWN_MEMBER_ID) for identity in request.members)
        return store.reply(call, LeaveGroupResponse(members=rows))
    return store.kind_of(group).leave(store, group, call, request)
